"""Scalars of `arith` and `tensor` that are numbers, or made of the sizes of tensors."""

from collections.abc import Callable

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Operation, SSAValue

from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid.base import extents_of
from braid.dialects.braid.layout import DYNAMIC
from braid.support.sizes.assumptions import Answer, Assumptions
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import ceildiv, floordiv, maximum, minimum, mod

_DEEPEST = 64
"""So many ops are looked through."""


def _sum(a: Extent, b: Extent) -> Extent:
    return a + b


def _difference(a: Extent, b: Extent) -> Extent:
    return a - b


def _product(a: Extent, b: Extent) -> Extent:
    return a * b


_RULES: dict[str, Callable[[Extent, Extent], Extent]] = {
    "arith.addi": _sum,
    "arith.subi": _difference,
    "arith.muli": _product,
    "arith.maxsi": maximum,
    "arith.maxui": maximum,
    "arith.minsi": minimum,
    "arith.minui": minimum,
    "arith.floordivsi": floordiv,
    "arith.ceildivsi": ceildiv,
    "arith.ceildivui": ceildiv,
    "arith.divsi": floordiv,
    "arith.divui": floordiv,
    "arith.remsi": mod,
    "arith.remui": mod,
}
"""On numbers that are not negative, which all rules here agree about."""


def index_value(value: SSAValue, known: Assumptions, depth: int = _DEEPEST) -> Extent | None:
    """Return a scalar as a number or a size, None where it is data or may be negative."""
    op = value.owner
    if not isinstance(op, Operation) or not depth:
        return None
    name = op_name(op)
    if isinstance(op, arith.ConstantOp):
        return op.value.value.data if isinstance(op.value, IntegerAttr) else None
    if isinstance(op, tensor.DimOp):
        return _extent(op, known, depth - 1)
    if isinstance(op, arith.IndexCastOp):
        return index_value(op.input, known, depth - 1)
    rule = _RULES.get(name)
    if rule is None:
        return None
    operands = [index_value(operand, known, depth - 1) for operand in op.operands]
    left, right = operands if len(operands) == 2 else (None, None)
    if left is None or right is None:
        return None
    if "div" in name or "rem" in name:
        is_plain = known.at_most(0, left) is Answer.YES and known.at_most(1, right) is Answer.YES
        return rule(left, right) if is_plain else None
    is_unsigned = name in ("arith.maxui", "arith.minui")
    if is_unsigned and any(known.at_most(0, each) is not Answer.YES for each in (left, right)):
        return None
    return rule(left, right)


def _extent(op: tensor.DimOp, known: Assumptions, depth: int) -> Extent | None:
    dim = index_value(op.index, known, depth)
    if not isinstance(dim, int) or not isinstance(op.source.type, TensorType):
        return None
    extents = extents_of(op.source)
    return extents[dim] if 0 <= dim < len(extents) and extents[dim] != DYNAMIC else None
