"""Nests of rows: a reduction along any dims, with elementwise ops before and after it."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from braid.analysis.nests.dims import LoopDim, has_elements, is_repeated, merged, strides_along
from braid.analysis.nests.pointwise import ExtentsOf, Pointwise, points_of
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent

_SHORTEST_ROWS = range(2, 5)
"""The most elements of rows that are deinterleaved: the number of shuffles is the square."""


@dataclass(frozen=True)
class Reduction:
    """A group's only reduction, with the ops on its operand and those on its result."""

    op: ReduceOp
    reads: Pointwise
    points: Pointwise


@dataclass(frozen=True)
class ReductionNest:
    """The dims that stay and those that are reduced, outermost first; sizes where they are open.

    Strides list the `reads` tensors that are reduced, then the operands of the ops on the result,
    then the results.
    """

    kept: tuple[LoopDim[Extent], ...]
    reduced: tuple[LoopDim[Extent], ...]
    reads: int
    has_columns: bool

    @property
    def is_interleaved(self) -> bool:
        """Return whether neighbouring rows are so short that they are deinterleaved."""
        length, along = self.reduced[-1].extent, self.reduced[-1].strides[: self.reads]
        rows = self.kept[-1].strides[: self.reads]
        is_dense = all(step == 1 and row == length for step, row in zip(along, rows, strict=True))
        return not self.has_columns and length in _SHORTEST_ROWS and is_dense

    def used_lanes(self, lanes: int) -> float:
        """Return the fraction of used lanes in all vectors, 1 for open dims."""
        extent = (self.kept if self.has_columns else self.reduced)[-1].extent
        if self.is_interleaved or not isinstance(extent, int):
            return 1.0
        return extent / (-(-extent // lanes) * lanes)


def reduction(group: FusedOp, extents_of: ExtentsOf = shape_of) -> Reduction | None:
    """Return the only reduction of a group whose tensors have elements and known or open extents.

    None unless all else is elementwise.
    """
    ops = [op for op in group.body.block.ops if isinstance(op, ReduceOp)]
    tensors = (*group.body.block.args, *group.terminator.arguments)
    if len(ops) != 1 or not all(has_elements(extents_of(tensor)) for tensor in tensors):
        return None
    op = ops[0]
    before, after = _parts(group, op)
    reads = points_of(before, [op.input], shape_of(op.input), is_open=True)
    results = tuple(group.terminator.arguments)
    points = points_of(after, results, shape_of(op.output), is_open=True)
    if reads is None or points is None or not reads.leaves:
        return None
    if not _is_self_contained(points, op, op.output) or not _is_self_contained(reads, op):
        return None
    return Reduction(op, reads, points)


def reduction_nest(
    found: Reduction, choice: LayoutChoice, extents_of: ExtentsOf = shape_of
) -> ReductionNest | None:
    """Return the merged loop dims, the innermost one contiguous; `extents_of` gives the shapes.

    The result is None for layouts without such a nest, and if along some dim it is unknown whether
    a tensor is broadcast or as long as the others.
    """
    shape, kept = extents_of(found.op.input), extents_of(found.op.output)
    reads, points = (
        [(extents_of(leaf), choice.operands[leaf.index]) for leaf in part.leaves]
        for part in (found.reads, found.points)
    )
    if not all(is_repeated(own, shape) for own, _ in reads):
        return None
    if not all(is_repeated(own, kept) for own, _ in points):
        return None
    if any(tuple(extents_of(result)) != tuple(kept) for result in found.points.results):
        return None
    whole = [layout for extents, layout in reads if extents == shape]
    order = whole[0] if whole else Layout.row_major(len(shape))
    if any(shape[dim] % order.block(dim) != 0 for dim in range(order.rank)):
        return None
    leaves = [*reads, *points, *((kept, layout) for layout in choice.results)]
    strides = [strides_along(extents, layout, order) for extents, layout in leaves]
    known = [each for each in strides if each is not None]
    if len(known) < len(strides):
        return None
    columns = zip(*known, strict=True)
    extents = order.storage_shape(shape)
    is_reduced = [target.dim in found.op.dims.get_values() for target in order.dims]
    dims = [LoopDim[Extent](e, tuple(c)) for e, c in zip(extents, columns, strict=True)]
    kept_dims, reduced_dims = (
        merged([dim for dim, own in zip(dims, is_reduced, strict=True) if own == wanted])
        for wanted in (False, True)
    )
    return _contiguous(kept_dims, reduced_dims, len(known), len(found.reads.leaves))


def _contiguous(
    kept: Sequence[LoopDim[Extent]], reduced: Sequence[LoopDim[Extent]], tensors: int, reads: int
) -> ReductionNest | None:
    """Return the nest with contiguous vectors; None if neither reads nor results have them."""
    single = LoopDim[Extent](1, (0,) * tensors)
    kept, reduced = tuple(kept) or (single,), tuple(reduced) or (single,)
    if any(stride not in (0, 1) for stride in kept[-1].strides[reads:]):
        return None
    if _are_contiguous(reduced[-1].strides[:reads]):
        return ReductionNest(kept, reduced, reads, has_columns=False)
    if _are_contiguous(kept[-1].strides[:reads]) or kept[-1].extent == 1:
        return ReductionNest(kept, reduced, reads, has_columns=True)
    return None


def _are_contiguous(strides: Sequence[Extent]) -> bool:
    """Return whether vectors of all tensors are contiguous or broadcast, and some are
    contiguous."""
    return 1 in strides and all(stride in (0, 1) for stride in strides)


def _parts(group: FusedOp, op: ReduceOp) -> tuple[list[Operation], list[Operation]]:
    """Return the ops that make the operands of `op`, and the others; constants go to their
    readers."""
    wanted = {op.input}
    before: list[Operation] = []
    for other in reversed(list(group.body.block.ops)):
        if wanted.intersection(other.results):
            before.insert(0, other)
            wanted.update(other.operands)
    after = [
        other
        for other in group.body.block.ops
        if other not in (op, group.terminator)
        and (other not in before or isinstance(other, ConstantOp))
    ]
    return before, after


def _is_self_contained(points: Pointwise, op: ReduceOp, *known: SSAValue) -> bool:
    """Return whether ops read only leaves, each other and `known` values, and make all results."""
    made = {result for other in points.ops for result in other.results}
    read = {operand for other in points.ops for operand in other.operands}
    return all(
        value in made or value in points.leaves or value in known
        for value in (*read, *points.results)
    )
