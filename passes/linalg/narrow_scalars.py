"""Scalar ops of `arith` on numbers of 8 bits and less, which braid only stores.

Floats are computed in f32 and integers in i32, and rounded, or cut, once for each op.
"""

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import Float8E8M0FNUType
from xdsl.ir import Operation, SSAValue

from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import f32, i1, is_float, is_stored_only
from braid.dialects.braid.narrow_numbers import decoded, encoded
from braid.passes.linalg.node import UpstreamNode
from braid.passes.linalg.scalar_types import as_unsigned, predicate_of, result_element

UNSIGNED = {
    "arith.divui": "div",
    "arith.remui": "rem",
    "arith.maxui": "maximum",
    "arith.minui": "minimum",
    "arith.shrui": "shift_right",
}
"""Ops that take the bits of their operands for unsigned integers, and braid's on these."""

SCALED = {"arith.scaling_extf": "mul", "arith.scaling_truncf": "div"}
"""Ops that convert a float and apply a scale to it, and how that is applied."""

_TO_MORE_BITS = ("arith.extf", "arith.extsi", "arith.extui")
_TO_OTHERS = ("arith.fptosi", "arith.fptoui", "arith.sitofp", "arith.uitofp")
CASTS = frozenset({*_TO_MORE_BITS, *_TO_OTHERS, "arith.truncf", "arith.trunci"})
"""Ops that convert numbers by value."""

_AS_THEY_ARE = ("arith.bitcast", "arith.select")
"""Ops that take numbers which are only stored as they are."""

Operands = Sequence[SSAValue]


def is_narrow(op: Operation, operands: Operands) -> bool:
    """Return whether `op` computes with numbers that are only stored."""
    types = [result_element(op.results[0]), *map(element_type_of, operands)]
    return op_name(op) not in _AS_THEY_ARE and any(map(is_stored_only, types))


def narrow_scalar(
    node: UpstreamNode,
    op: Operation,
    operands: Operands,
    compute: Callable[[UpstreamNode, Operation, Operands], SSAValue],
) -> SSAValue:
    """Return the result of `op` on tensors, where `compute` applies it to i32 and f32."""
    name, wanted = op_name(op), result_element(op.results[0])
    is_unsigned = name in (*UNSIGNED, "arith.extui", "arith.uitofp")
    if name == "arith.cmpi":
        is_unsigned = predicate_of(node, op) >= 6
    if name in ("arith.extsi", "arith.sitofp") and element_type_of(operands[0]) == i1:
        node.leave()  # true is -1
    values = [_wide(node, value, is_unsigned=is_unsigned) for value in operands]
    found = values[0] if name in CASTS else compute(node, op, values)
    if is_stored_only(wanted):
        return encoded(node, found, wanted, saturate=False)
    return node.cast(found, wanted)


def _wide(node: UpstreamNode, value: SSAValue, *, is_unsigned: bool) -> SSAValue:
    element_type = element_type_of(value)
    if is_unsigned and element_type != i1 and not is_float(element_type):
        value = as_unsigned(node, value)
    return decoded(node, value)


def scaled(node: UpstreamNode, op: Operation, operands: Operands) -> SSAValue:
    """Multiply or divide by a power of two, the largest that is not above the given scale."""
    power, wanted = Float8E8M0FNUType(), result_element(op.results[0])
    value, scale = decoded(node, operands[0]), operands[1]
    if element_type_of(scale) != power:
        scale = encoded(node, decoded(node, scale), power, rounding="down")
    found = node.apply(SCALED[op_name(op)], node.cast(value, f32), decoded(node, scale))
    if is_stored_only(wanted):
        return encoded(node, found, wanted, saturate=False)
    return node.cast(found, wanted)
