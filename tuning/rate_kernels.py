"""Kernels whose time gives the rates of a core: multiply-adds in registers, and copies.

They are written in upstream dialects and compiled as the kernels of models are, so that what is
measured is what these can reach. The computed values do not matter.
"""

from dataclasses import dataclass
from io import StringIO

from xdsl.parser import Parser

from braid.passes.infrastructure.context import make_context
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.machines.machine import Machine

FLOAT_BITS = {"f32": 32, "f64": 64, "f16": 16, "bf16": 16}
INTEGER_BITS = {"i32": 32, "i8": 8}
TYPES = (*FLOAT_BITS, *INTEGER_BITS)
"""Element types whose rate of operations is measured."""

_NUMPY = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "bf16": "<u2", "i32": "<i4", "i8": "|i1"}
_FUSED = {
    "f32": frozenset[str](),
    "f64": frozenset[str](),
    "f16": frozenset({"avx512fp16", "fullfp16"}),
}
"""Types with a multiply-add on machines that have one, and one of the named features if any is."""

_UNROLLED = 4
"""Vectors of a copy in one iteration of its loop."""


@dataclass(frozen=True)
class RateKernel:
    """A kernel whose grid repeats `amount` of a resource; arguments as in `TimingRequest`."""

    kernel: Kernel
    amount: float
    arguments: tuple[tuple[str, int], ...]
    what: str


def multiply_adds(element_type: str, machine: Machine, grid: int) -> RateKernel:
    """Emit independent multiplications and additions of values in registers."""
    bits = {**FLOAT_BITS, **INTEGER_BITS}[element_type]
    lanes = int(machine.fact("vector_bytes")) * 8 // bits
    count = int(machine.fact("vector_registers")) * 3 // 4
    vector, memref = f"vector<{lanes}x{element_type}>", f"memref<{count}x{lanes}x{element_type}>"
    text = StringIO()
    names = [f"%a{n}" for n in range(count)]
    text.write(f"func.func @multiply_adds(%x: {memref}, %y: {memref}, %b: index, %e: index) {{\n")
    text.write("  %one = arith.constant 1 : index\n  %zero = arith.constant 0 : index\n")
    for number, name in enumerate(names):
        text.write(f"  %p{number} = arith.constant {number} : index\n")
        load = f"vector.load %x[%p{number}, %zero] : {memref}, {vector}"
        text.write(f"  {name} = {load}\n")
    carried = ", ".join(f"%c{n} = {name}" for n, name in enumerate(names))
    types = ", ".join([vector] * count)
    text.write(f"  %r:{count} = scf.for %i = %b to %e step %one iter_args({carried})")
    text.write(f" -> ({types}) {{\n")
    for number in range(count):
        text.write(_multiply_add(number, element_type, vector, machine))
    yielded = ", ".join(f"%s{n}" for n in range(count))
    text.write(f"    scf.yield {yielded} : {types}\n  }}\n")
    for number in range(count):
        text.write(f"  vector.store %r#{number}, %y[%p{number}, %zero] : {memref}, {vector}\n")
    text.write("  func.return\n}\n")
    arguments = ((_NUMPY[element_type], count * lanes),) * 2
    what = f"{count} multiply-adds of {vector} at a time"
    kernel = _kernel("multiply_adds", text.getvalue(), grid)
    return RateKernel(kernel, 2.0 * count * lanes * grid, arguments, what)


def _multiply_add(number: int, element_type: str, vector: str, machine: Machine) -> str:
    """Emit %s = %c * %a0 + %a1 for one of the values that are carried."""
    carried, result = f"%c{number}", f"%s{number}"
    if _is_fused(element_type, machine):
        return f"    {result} = vector.fma {carried}, %a0, %a1 : {vector}\n"
    suffix = "f" if element_type in FLOAT_BITS else "i"
    return (
        f"    %m{number} = arith.mul{suffix} {carried}, %a0 : {vector}\n"
        f"    {result} = arith.add{suffix} %m{number}, %a1 : {vector}\n"
    )


def _is_fused(element_type: str, machine: Machine) -> bool:
    needed = _FUSED.get(element_type)
    if needed is None or not machine.fact("fma"):
        return False
    return not needed or bool(needed & set(machine.enabled_features))


def scaled_copy(bytes: int, machine: Machine, grid: int) -> RateKernel:
    """Read half of `bytes`, rounded, and write it, times a factor, to the other half.

    The factor keeps the loop from becoming a call of `memcpy`, which has other instructions.
    """
    lanes = int(machine.fact("vector_bytes")) // 4
    step = lanes * _UNROLLED
    count = max(bytes // 8 // step, 1) * step
    memref, vector = f"memref<{count}xf32>", f"vector<{lanes}xf32>"
    text = StringIO()
    factor = f"memref<{lanes}xf32>"
    text.write(f"func.func @copy(%x: {memref} {{llvm.noalias}}, %f: {factor}, ")
    text.write(f"%y: {memref} {{llvm.noalias}}, %b: index, %e: index) {{\n")
    text.write("  %one = arith.constant 1 : index\n  %zero = arith.constant 0 : index\n")
    text.write(f"  %step = arith.constant {step} : index\n  %n = arith.constant {count} : index\n")
    text.write(f"  %factor = vector.load %f[%zero] : {factor}, {vector}\n")
    text.write("  scf.for %i = %b to %e step %one {\n    scf.for %j = %zero to %n step %step {\n")
    for part in range(_UNROLLED):
        text.write(
            f"      %o{part} = arith.constant {part * lanes} : index\n"
            f"      %k{part} = arith.addi %j, %o{part} : index\n"
            f"      %v{part} = vector.load %x[%k{part}] : {memref}, {vector}\n"
            f"      %w{part} = arith.mulf %v{part}, %factor : {vector}\n"
            f"      vector.store %w{part}, %y[%k{part}] : {memref}, {vector}\n"
        )
    text.write("    }\n  }\n  func.return\n}\n")
    arguments = (("<f4", count), ("<f4", lanes), ("<f4", count))
    kernel = _kernel("copy", text.getvalue(), grid)
    return RateKernel(kernel, 8.0 * count * grid, arguments, f"{8 * count} bytes read or written")


def _kernel(symbol: str, text: str, grid: int) -> Kernel:
    context = make_context()
    context.allow_unregistered = True
    return Kernel(symbol, Parser(context, text).parse_module(), grid)
