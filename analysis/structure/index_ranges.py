"""Bound the integer inputs of a program so that lookups by them are in bounds.

Uses are followed forward from an argument: through casts, movements and arithmetic with constants
to the indices of gathers and scatters, whose tables have a number of rows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue, Use

from braid.analysis.structure.handed_values import forwarded
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import numpy_from_dense
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp

_MOST_USES = 10_000
"""Uses that are followed of one argument."""
_MOST_STEPS = 100
"""Ops between an argument and an index."""


@dataclass(frozen=True)
class IndexRange:
    """Numbers from `least` to `most`, both included."""

    least: float = -math.inf
    most: float = math.inf

    def within(self, other: "IndexRange") -> "IndexRange":
        """Return the intersection of both; this one if that is empty."""
        both = IndexRange(max(self.least, other.least), min(self.most, other.most))
        return both if both.least <= both.most else self


ANY = IndexRange()


def index_ranges(function: FuncOp) -> list[IndexRange]:
    """Return the range of each argument of a function; `ANY` where nothing is known of it."""
    return [_Ranges().of(argument) for argument in function.body.block.args]


class _Ranges:
    """The ranges of values, each looked for once; a value that a loop hands round is any."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, IndexRange] = {}
        self._left = _MOST_USES
        self._steps = 0

    def of(self, value: SSAValue) -> IndexRange:
        if value in self._known or self._steps == _MOST_STEPS:
            return self._known.get(value, ANY)
        self._known[value] = found = ANY
        self._steps += 1
        for use in value.uses:
            self._left -= 1
            if self._left < 0:
                break
            found = found.within(self._at(use))
        self._steps -= 1
        self._known[value] = found
        return found

    def _at(self, use: Use) -> IndexRange:
        """Return the range that one use permits."""
        op, index = use.operation, use.index
        rows = _rows(op, index)
        if rows is not None:
            return IndexRange(0, rows - 1) if rows > 0 else ANY
        if isinstance(op, scf.YieldOp | scf.ConditionOp):
            return self._handed_on(op, op.operands[index])
        if isinstance(op, scf.ForOp) and index >= len(op.operands) - len(op.results):
            return self.of(op.body.block.args[1 + index - len(op.operands) + len(op.results)])
        if isinstance(op, scf.WhileOp):
            return self.of(op.before_region.block.args[index])
        if isinstance(op, _MOVEMENTS) or op.name in ("braid.cast", "braid.select"):
            is_condition = op.name == "braid.select" and index == 0
            return ANY if is_condition else self.of(op.results[0])
        if isinstance(op, ReduceOp):
            return self.of(op.results[0]) if op.kind.data in ("maximum", "minimum") else ANY
        before = _BEFORE.get(op.name)
        if before is None or len(op.operands) != 2:
            return ANY
        other = _constant(op.operands[1 - index])
        return ANY if other is None else before(self.of(op.results[0]), other, index)

    def _handed_on(self, terminator: Operation, value: SSAValue) -> IndexRange:
        """Return the ranges that the results permit for a branch or loop that ends so."""
        parent = terminator.parent_op()
        found = ANY
        if parent is None:
            return found
        for handed, result in zip(forwarded(terminator), parent.results, strict=False):
            if handed is value:
                found = found.within(self.of(result))
        return found


_MOVEMENTS = (BroadcastOp, ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp)
"""Ops whose results have elements of their operands alone, or that of a padding."""


def _rows(op: Operation, index: int) -> int | None:
    """Return the rows of the table that operand `index` looks up; None where it is no index."""
    if index != 1:
        return None
    match op:
        case GatherOp() | GatherElementsOp() | ScatterElementsOp():
            return shape_of(op.data)[op.dim.value.data]
        case GatherNdOp():
            return _least_rows(op, op.batch_dims.value.data)
        case ScatterNdOp():
            return _least_rows(op, 0)
        case _:
            return None


def _least_rows(op: GatherNdOp | ScatterNdOp, batch: int) -> int:
    """Return a range that fits all indices of a tuple, which address several dims."""
    length = shape_of(op.indices)[-1]
    return min(shape_of(op.data)[batch : batch + length], default=0)


def _constant(value: SSAValue) -> tuple[float, float] | None:
    """Return the least and the largest element of a constant, also one that is repeated."""
    owner = value.owner
    if isinstance(owner, BroadcastOp | ReshapeOp):
        return _constant(owner.operands[0])
    if not isinstance(owner, ConstantOp) or not isinstance(value.type, TensorType):
        return None
    numbers = numpy_from_dense(owner.value)
    if numbers.size == 0 or not np.issubdtype(numbers.dtype, np.number):
        return None
    return float(numbers.min()), float(numbers.max())


def _before_add(after: IndexRange, other: tuple[float, float], index: int) -> IndexRange:
    return IndexRange(after.least - other[0], after.most - other[1])


def _before_sub(after: IndexRange, other: tuple[float, float], index: int) -> IndexRange:
    if index == 0:
        return IndexRange(after.least + other[1], after.most + other[0])
    return IndexRange(other[1] - after.most, other[0] - after.least)


def _before_mul(after: IndexRange, other: tuple[float, float], index: int) -> IndexRange:
    if other[0] != other[1] or other[0] <= 0:
        return ANY
    return IndexRange(_up(after.least / other[0]), _down(after.most / other[0]))


def _before_div(after: IndexRange, other: tuple[float, float], index: int) -> IndexRange:
    if index == 1 or other[0] != other[1] or other[0] < 1:
        return ANY
    return IndexRange(after.least * other[0], (after.most + 1) * other[0] - 1)


def _before_maximum(after: IndexRange, other: tuple[float, float], index: int) -> IndexRange:
    return IndexRange(-math.inf if other[0] >= after.least else after.least, after.most)


def _before_minimum(after: IndexRange, other: tuple[float, float], index: int) -> IndexRange:
    return IndexRange(after.least, math.inf if other[1] <= after.most else after.most)


def _up(number: float) -> float:
    return math.ceil(number) if math.isfinite(number) else number


def _down(number: float) -> float:
    return math.floor(number) if math.isfinite(number) else number


_BEFORE: dict[str, Callable[[IndexRange, tuple[float, float], int], IndexRange]] = {
    "braid.add": _before_add,
    "braid.sub": _before_sub,
    "braid.mul": _before_mul,
    "braid.div": _before_div,
    "braid.maximum": _before_maximum,
    "braid.minimum": _before_minimum,
}
"""The range of an operand, from that of the result and the other operand, a constant."""
