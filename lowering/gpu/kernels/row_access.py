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
    """The rows of the first nest that reduces; None for nests that do not."""
    for nest in nests:
        columns = prod(nest.extents[dim] for dim in nest.reduced)
        if columns > 1 and nest.points > 0:
            return Rows(nest.points, columns)
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
    return RowNest(nest, tuple(accesses), bool(along))


def _buffers(op: linalg.GenericOp | linalg.FillOp) -> Sequence[SSAValue]:
    return op.outputs if isinstance(op, linalg.FillOp) else op.operands


def _dims(nest: ThreadNest, rows: Rows) -> tuple[list[int], list[int]] | None:
    """The dims of a nest that number rows, and those that number columns, outermost first."""
    across = [dim for dim, extent in enumerate(nest.extents) if extent > 1]
    along: list[int] = []
    if nest.reduced or prod(nest.extents) == rows.count * rows.columns:
        while across and prod(nest.extents[dim] for dim in along) < rows.columns:
            along.insert(0, across.pop())
    reduced = [dim for dim in nest.reduced if nest.extents[dim] > 1]
    if (nest.reduced and reduced != along) or (along and _count(nest, along) != rows.columns):
        return None
    return (across, along) if _count(nest, across) == rows.count else None


def _count(nest: ThreadNest, dims: Sequence[int]) -> int:
    return prod(nest.extents[dim] for dim in dims)


def _access(
    buffer: SSAValue,
    map: AffineMap,
    extents: Sequence[int],
    across: Sequence[int],
    along: Sequence[int],
    rows: Rows,
) -> Access | None:
    steps = _steps(buffer, map)
    if steps is None:
        return None
    strides, columns = _dense_steps(extents, across), _dense_steps(extents, along)
    own, inner = ([steps.get(dim, 0) for dim in dims] for dims in (across, along))
    if along and inner == columns:
        if own == [stride * rows.columns for stride in strides]:
            return Access.ELEMENT
        return Access.COLUMN if not any(own) else None
    if any(inner):
        return None
    if own == strides:
        return Access.ROW
    return Access.ONE if not any(own) else None


def _dense_steps(extents: Sequence[int], dims: Sequence[int]) -> list[int]:
    return [prod(extents[dim] for dim in dims[number + 1 :]) for number in range(len(dims))]


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
