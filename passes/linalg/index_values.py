"""Scalars of `arith` and `tensor` that are numbers, or made of the sizes of tensors."""

from dataclasses import dataclass, field

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, i32, i64
from xdsl.ir import Operation, SSAValue

from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid.base import extents_of
from braid.dialects.braid.layout import DYNAMIC
from braid.support.sizes.assumptions import Answer, Assumptions
from braid.support.sizes.expression import Extent, SizeError
from braid.support.sizes.operators import ceildiv
from braid.support.sizes.rules import ARITHMETIC, may_wrap

_DEEPEST = 64
"""The number of ops that are looked through."""

_RULES = {
    "arith.addi": "add",
    "arith.divsi": "div",
    "arith.divui": "div",
    "arith.floordivsi": "div",
    "arith.maxsi": "maximum",
    "arith.maxui": "maximum",
    "arith.minsi": "minimum",
    "arith.minui": "minimum",
    "arith.muli": "mul",
    "arith.remsi": "rem",
    "arith.remui": "rem",
    "arith.subi": "sub",
}
"""The rules of sizes by which ops of `arith` compute."""

_ROUND_UP = ("arith.ceildivsi", "arith.ceildivui")
_ANY_SIGN = ("arith.addi", "arith.maxsi", "arith.minsi", "arith.muli", "arith.subi")
"""Ops that are their rules for negative numbers too; others are read as unsigned, or rounded."""


def index_value(value: SSAValue, known: Assumptions) -> Extent | None:
    """Return a scalar as a number or a size, None where it is data, or may wrap around.

    `known` has the assumptions about the symbols.
    """
    return _Evaluation(known).value(value, _DEEPEST)


@dataclass(frozen=True)
class _Evaluation:
    """An evaluation keeps the assumptions about symbols, and each scalar that it has computed."""

    known: Assumptions
    found: dict[SSAValue, Extent | None] = field(default_factory=dict[SSAValue, "Extent | None"])

    def value(self, value: SSAValue, depth: int) -> Extent | None:
        """Return a scalar, looking through `depth` ops."""
        if value not in self.found:
            self.found[value] = self._computed(value, depth - 1) if depth else None
        return self.found[value]

    def _computed(self, value: SSAValue, depth: int) -> Extent | None:
        op = value.owner
        if not isinstance(op, Operation) or value.type not in (IndexType(), i32, i64):
            return None
        match op:
            case arith.ConstantOp():
                return op.value.value.data if isinstance(op.value, IntegerAttr) else None
            case tensor.DimOp():
                return self._extent(op, depth)
            case arith.IndexCastOp():
                return self.value(op.input, depth)
            case _:
                operands = [self.value(operand, depth) for operand in op.operands]
                extents = [extent for extent in operands if extent is not None]
                is_known = len(extents) == len(operands) == 2
                return self._combined(op_name(op), *extents) if is_known else None

    def _extent(self, op: tensor.DimOp, depth: int) -> Extent | None:
        dim = self.value(op.index, depth)
        if not isinstance(dim, int) or not isinstance(op.source.type, TensorType):
            return None
        extents = extents_of(op.source)
        return extents[dim] if 0 <= dim < len(extents) and extents[dim] != DYNAMIC else None

    def _combined(self, name: str, left: Extent, right: Extent) -> Extent | None:
        """Return the result of an `arith` op on two extents."""
        if name not in _ANY_SIGN and not (self._is_extent(left) and self._is_extent(right)):
            return None
        try:
            if name in _ROUND_UP:
                found = ceildiv(left, right) if right != 0 else None
            else:
                rule = ARITHMETIC.get(_RULES.get(name, ""))
                found = None if rule is None else rule(self.known, left, right)
        except SizeError:
            return None  # it is larger than any size is written
        return None if found is None or may_wrap(found) else found

    def _is_extent(self, extent: Extent) -> bool:
        return self.known.at_most(0, extent) is Answer.YES
