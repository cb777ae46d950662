"""From the function of a kernel to C."""

from xdsl.dialects.builtin import Float32Type
from xdsl.dialects.func import FuncOp, ReturnOp

from braid.extend import layout_of, shape_of

EXPRESSIONS = {
    "braid.abs": "fabsf({})",
    "braid.add": "{} + {}",
    "braid.div": "{} / {}",
    "braid.exp": "expf({})",
    "braid.mul": "{} * {}",
    "braid.neg": "-{}",
    "braid.sqrt": "sqrtf({})",
    "braid.sub": "{} - {}",
    "braid.tanh": "tanhf({})",
}
"""Ops that have C, and what of their operands they are; the operands are names."""


def c_source(kernel: FuncOp) -> str | None:
    """Return the kernel as a C function; None where it is more than ops of `EXPRESSIONS` on f32.

    It takes an address for each operand and each result, and the iterations to compute, which
    are the elements.
    """
    block = kernel.body.block
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    if len({shape_of(value) for value in values}) != 1:
        return None
    if not all(isinstance(value.type.element_type, Float32Type) for value in values):
        return None
    if not all(layout_of(value.type).is_row_major for value in values):
        return None
    names = {argument: f"x{number}[i]" for number, argument in enumerate(block.args)}
    lines: list[str] = []
    for op in block.ops:
        if isinstance(op, ReturnOp):
            lines += [f"y{n}[i] = {names[v]};" for n, v in enumerate(op.arguments)]
        elif op.name in EXPRESSIONS:
            names[op.results[0]] = f"t{len(lines)}"
            expression = EXPRESSIONS[op.name].format(*(names[v] for v in op.operands))
            lines.append(f"float t{len(lines)} = {expression};")
        else:
            return None
    results = len(kernel.function_type.outputs)
    pointers = [f"const float *x{n}" for n in range(len(block.args))]
    pointers += [f"float *y{n}" for n in range(results)]
    arguments = ", ".join([*pointers, "int64_t begin", "int64_t end"])
    body = "\n".join(f"    {line}" for line in lines)
    return f"""#include <math.h>
#include <stdint.h>

void {kernel.sym_name.data}({arguments}) {{
  for (int64_t i = begin; i < end; ++i) {{
{body}
  }}
}}
"""
