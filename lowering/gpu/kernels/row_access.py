"""How a nest accesses a buffer, where all nests of a kernel go over the same rows.

A kernel has `rows` rows of `columns` elements. A nest goes over all elements, or over the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from braid.lowering.gpu.kernels.thread_nests import ThreadNest


class Access(Enum):
    """Which element of a buffer belongs to element (row, column)."""

    ELEMENT = "row * columns + column"
    ROW = "row"
    COLUMN = "column"
    ONE = "0"


@dataclass(frozen=True)
class Rows:
    """The rows that a kernel works on."""

    count: int
    columns: int


@dataclass(frozen=True)
class RowNest:
    """A nest, how it accesses each of its operands, and whether it goes over columns."""

    nest: ThreadNest
    accesses: tuple[Access, ...]
    over_columns: bool

    @property
    def reduces(self) -> bool:
        """Whether it makes one element of each row."""
        return bool(self.nest.reduced)


def rows_of(nests: Sequence[ThreadNest]) -> Rows | None:
    """The rows of the first nest that reduces one dim; None for nests that do not."""
    for nest in nests:
        if len(nest.reduced) == 1 and nest.extents[nest.reduced[0]] > 1 and nest.points > 0:
            return Rows(nest.points, nest.extents[nest.reduced[0]])
    return None


def row_nest(nest: ThreadNest, rows: Rows) -> RowNest | None:
    """The nest as one over these rows; None where it is another."""
    split = _dims(nest, rows)
    if split is None:
        return None
    across, along = split
    op = nest.nest
    accesses: list[Access] = []
    for operand, map in zip(_buffers(op), nest.maps, strict=True):
        access = _access(operand, map, nest.extents, across, along, rows)
        if access is None:
            return None
        accesses.append(access)
    return RowNest(nest, tuple(accesses), along is not None)


def _buffers(op: linalg.GenericOp | linalg.FillOp) -> Sequence[SSAValue]:
    return op.outputs if isinstance(op, linalg.FillOp) else op.operands


def _dims(nest: ThreadNest, rows: Rows) -> tuple[list[int], int | None] | None:
    """The dims of a nest that number rows, outermost first, and the one of columns."""
    wide = [dim for dim, extent in enumerate(nest.extents) if extent > 1]
    if nest.reduced:
        if list(nest.reduced) != wide[-1:] or nest.extents[nest.reduced[0]] != rows.columns:
            return None
        across, along = wide[:-1], nest.reduced[0]
    elif prod(nest.extents) == rows.count * rows.columns:
        if not wide or nest.extents[wide[-1]] != rows.columns:
            return None
        across, along = wide[:-1], wide[-1]
    else:
        across, along = wide, None
    fits = prod(nest.extents[dim] for dim in across) == rows.count
    return (across, along) if fits else None


def _access(
    buffer: SSAValue,
    map: AffineMap,
    extents: Sequence[int],
    across: Sequence[int],
    along: int | None,
    rows: Rows,
) -> Access | None:
    steps = _steps(buffer, map)
    if steps is None:
        return None
    strides = [prod(extents[dim] for dim in across[n + 1 :]) for n in range(len(across))]
    own = [steps.get(dim, 0) for dim in across]
    column = 0 if along is None else steps.get(along, 0)
    if along is not None and column == 1:
        if own == [stride * rows.columns for stride in strides]:
            return Access.ELEMENT
        return Access.COLUMN if not any(own) else None
    if column == 0 and own == strides:
        return Access.ROW
    return Access.ONE if column == 0 and not any(own) else None


def _steps(buffer: SSAValue, map: AffineMap) -> dict[int, int] | None:
    """By how many elements of a dense buffer each dim goes on; None for other maps or buffers."""
    if not isinstance(type := buffer.type, MemRefType):
        return {}
    shape = cast(MemRefType[Any], type).get_shape()
    if not isinstance(cast(MemRefType[Any], type).layout, NoneAttr):
        return None
    steps: dict[int, int] = {}
    for place, expr in enumerate(map.results):
        stride = prod(shape[place + 1 :])
        if isinstance(expr, AffineDimExpr):
            steps[expr.position] = steps.get(expr.position, 0) + stride
        elif not isinstance(expr, AffineConstantExpr) or expr.value != 0:
            return None
    return steps
