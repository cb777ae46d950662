"""Nests of scatters: slices of neighbours, and the indices that say where each slice is written."""

from dataclasses import dataclass

from xdsl.ir import BlockArgument

from braid.analysis.nests.dims import has_elements
from braid.analysis.nests.lines import single_op
from braid.analysis.nests.pointwise import ExtentsOf, InPlace
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_number, is_unsigned
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterOp
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


@dataclass(frozen=True)
class ScatterNest:
    """Slices of `length` neighbours, which replace elements of a tensor of `shape` or are added to
    them.

    `data`, `indices` and `updates` are arguments of the group. The extents `slices` give the number
    of slices. Each has `entries` indices for the first dims, or one index for the dim `along` and
    its own position in the other dims. `combine` names the op that joins it with the present
    element, None if it replaces that.
    """

    data: int
    indices: int
    updates: int
    shape: tuple[Extent, ...]
    slices: tuple[Extent, ...]
    length: Extent
    entries: int
    along: int | None
    combine: str | None
    are_unsigned: bool

    @property
    def in_place(self) -> tuple[InPlace, ...]:
        """Return the result over the data, unless those are the updates or indices as well."""
        return () if self.data in (self.indices, self.updates) else ((self.data, 0),)


def scatter_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> ScatterNest | None:
    """Return the scatter of numbers that a group is; None if a tensor has no elements."""
    op = single_op(group, ScatterOp)
    if op is None or len(group.results) != 1 or not is_number(element_type_of(op.output)):
        return None
    shapes = [extents_of(value) for value in op.operands]
    arguments = [value.index for value in op.operands if isinstance(value, BlockArgument)]
    if len(arguments) != 3 or not all(map(has_elements, shapes)):
        return None
    first, second, third = arguments
    shape, indices, updates = shapes
    is_elements = isinstance(op, ScatterElementsOp)
    outer = len(updates) if is_elements else len(indices) - 1
    entries = 1 if is_elements else indices[-1]
    if not isinstance(entries, int):
        return None
    reduction = op.reduction.data
    return ScatterNest(
        first,
        second,
        third,
        shape,
        updates[:outer],
        product_of(updates[outer:]),
        entries,
        op.dim.value.data if is_elements else None,
        None if reduction == "none" else reduction,
        is_unsigned(element_type_of(op.indices)),
    )
