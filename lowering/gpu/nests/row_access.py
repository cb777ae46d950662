"""Describe how a nest accesses a buffer, where all nests of a kernel go over the same rows.

A kernel has `rows` rows of `columns` elements. A nest goes over all elements, or over the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from braid.lowering.gpu.nests.linear_access import LinearAccess
from braid.lowering.gpu.nests.thread_nests import ThreadNest

_REPEATED = 8
"""The least average number of uses of each element of an operand that is read one by one."""


class Access(Enum):
    """The element of a buffer that belongs to element (row, column)."""

    ELEMENT = "row * columns + column"
    ROW = "row"
    COLUMN = "column"
    ONE = "0"
    ROW_PLACE = "somewhere that the row says"
    PLACE = "somewhere that row and column say"


@dataclass(frozen=True)
class Term:
    """A dim as a part of the number of a row or a column, and the value of a step along it.

    Its index is number / divisor % extent.
    """

    of_column: bool
    divisor: int
    extent: int
    step: int = 1


@dataclass(frozen=True)
class Rows:
    """The rows that a kernel works on."""

    count: int
    columns: int


@dataclass(frozen=True)
class RowNest:
    """A nest, how it accesses each of its operands, and whether it goes over columns.

    `terms` add up to the place in operands that are accessed somewhere; `dims` are those of the
    nest.
    """

    nest: ThreadNest
    accesses: tuple[Access, ...]
    over_columns: bool
    terms: tuple[tuple[Term, ...], ...]
    dims: Mapping[int, Term]

    @property
    def reduces(self) -> bool:
        """Return whether the nest makes one element of each row."""
        return bool(self.nest.reduced)


def rows_of(nests: Sequence[ThreadNest]) -> Rows | None:
    """Return the rows of the first nest that reduces; None for nests that do not."""
    for nest in nests:
        columns = prod(nest.extents[dim] for dim in nest.reduced)
        if columns > 1 and nest.points > 0:
            return Rows(nest.points, columns)
    return None


def row_nest(nest: ThreadNest, rows: Rows) -> RowNest | None:
    """Return the nest as a nest over these rows; None if it is no such nest."""
    split = _dims(nest, rows)
    if split is None:
        return None
    across, along = split
    op = nest.nest
    dims = {
        dim: Term(dims is along, step, nest.extents[dim])
        for dims in (across, along)
        for dim, step in zip(dims, _dense_steps(nest.extents, dims), strict=True)
    }
    accesses: list[Access] = []
    terms: list[tuple[Term, ...]] = []
    for operand, map in zip(_buffers(op), nest.maps, strict=True):
        steps = _steps(operand, map)
        access = None if steps is None else _access(steps, nest.extents, across, along, rows)
        if steps is None or access is None or (access is Access.PLACE and _is_large(operand, rows)):
            return None
        accesses.append(access)
        own = [replace(dims[dim], step=step) for dim, step in steps.items() if step and dim in dims]
        terms.append(tuple(sorted(own, key=lambda term: (term.of_column, -term.divisor))))
    return RowNest(nest, tuple(accesses), bool(along), tuple(terms), dims)


def _is_large(buffer: SSAValue, rows: Rows) -> bool:
    """Return whether a buffer has that many elements that how they are read matters."""
    elements = prod(cast(MemRefType[Any], buffer.type).get_shape())
    return elements * _REPEATED > rows.count * rows.columns


def _buffers(op: linalg.GenericOp | linalg.FillOp) -> Sequence[SSAValue]:
    return op.outputs if isinstance(op, linalg.FillOp) else op.operands


def _dims(nest: ThreadNest, rows: Rows) -> tuple[list[int], list[int]] | None:
    """Return the dims of a nest that number rows, and those that number columns, outermost
    first.
    """
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
    steps: Mapping[int, int],
    extents: Sequence[int],
    across: Sequence[int],
    along: Sequence[int],
    rows: Rows,
) -> Access | None:
    strides, columns = _dense_steps(extents, across), _dense_steps(extents, along)
    own, inner = ([steps.get(dim, 0) for dim in dims] for dims in (across, along))
    if along and inner == columns:
        if own == [stride * rows.columns for stride in strides]:
            return Access.ELEMENT
        return Access.PLACE if any(own) else Access.COLUMN
    if any(inner):
        return Access.PLACE
    if own == strides:
        return Access.ROW
    return Access.ROW_PLACE if any(own) else Access.ONE


def _dense_steps(extents: Sequence[int], dims: Sequence[int]) -> list[int]:
    return [prod(extents[dim] for dim in dims[number + 1 :]) for number in range(len(dims))]


def _steps(buffer: SSAValue, map: AffineMap) -> dict[int, int] | None:
    """Return by how many elements each dim advances; None where that, or where it begins, is
    unknown.
    """
    if not isinstance(buffer.type, MemRefType):
        return {}
    access = LinearAccess.of(buffer, map)
    if access is None or access.offset != 0:
        return None
    return {dim: step for dim, step in enumerate(access.steps) if step}
