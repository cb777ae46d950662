"""Groups of elementwise ops: one pass over memory, any DAG, several results."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import (
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.loop_dims import LoopDim, merged, strides_along
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.kernels.pointwise.loops import ElementwiseLoops
from braid.lowering.cpu.kernels.pointwise.points import Pointwise, pointwise
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.targets.kernels.kernel_family import Kernel, Schedule

_MOST_UNROLLED = 32
"""Vectors, beyond which code grows and nothing else."""


@dataclass(frozen=True)
class ElementwiseFamily(VectorFamily):
    """Any group of elementwise ops on tensors, or slices of them, with one innermost dim.

    Layouts: row-major, channels last, and channel blocks that divide the channels; operands that
    extend along one dim at most stay row-major.
    """

    name: str = "elementwise"
    version: int = 11

    def match(self, group: FusedOp) -> "ElementwiseCandidate | None":
        """Ops on block arguments, in at least one layout."""
        points = pointwise(group, with_slices=True)
        if points is None or not (points.leaves or points.slices):
            return None
        candidate = ElementwiseCandidate(group, self.unit, points)
        return candidate if candidate.layouts else None


@dataclass(frozen=True, eq=False)
class ElementwiseCandidate(VectorCandidate):
    """The ops of a group."""

    points: Pointwise

    def choices(self) -> Sequence[LayoutChoice]:
        """Row-major first: it costs no reorder at the model's edges."""
        layouts = _candidates(self.points.shape)
        choices = (uniform_choice(self.group, layout, {}) for layout in layouts)
        return [choice for choice in choices if _nest(self.points, choice) is not None]

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous."""
        return results_alike(choice) and _nest(self.points, choice) is not None

    def space(self, level: int) -> Iterator[Schedule]:
        """Vectors per iteration of the innermost loop: two hide the latency of polynomials."""
        for unroll in {0: (2,), 1: (1, 4), 2: (3, 8)}.get(level, ()):
            yield {"unroll": unroll}

    def takes(self, schedule: Schedule) -> bool:
        """Any unrolling within reason."""
        return sorted(schedule) == ["unroll"] and 1 <= schedule["unroll"] <= _MOST_UNROLLED

    def seconds(self, choice: LayoutChoice) -> float:
        """The larger of memory traffic and arithmetic."""
        points = self.points
        arithmetic = points.flops * math.prod(points.shape) / (self.unit.flops / 2)
        return max(arithmetic, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Loops over the merged dims, the outer ones in the grid."""
        choice = stored_choice(self.group)
        nest = _nest(self.points, choice)
        assert nest is not None, "the family was asked for layouts it did not offer"
        unroll = self.completed(schedule)["unroll"]
        starts = tuple(_start(op, choice.operands) for op in self.points.slices)
        loops = ElementwiseLoops(self.points, nest, starts, self.unit, unroll)
        body, in_place = loops.iteration, loops.in_place
        return grid_kernel(self.group, symbol, self.unit, loops.grid, body, in_place)


def _candidates(shape: Sequence[int]) -> list[Layout]:
    """Layouts of the results worth offering."""
    rank = len(shape)
    if rank == 0:
        return []
    candidates = [Layout.row_major(rank)]
    if rank >= 3:
        letters = candidates[0].tag
        candidates.append(Layout.parse(letters[0] + letters[2:] + letters[1]))
    if rank == 4:
        candidates += [
            Layout.channel_blocks(rank, block) for block in (8, 16) if shape[1] % block == 0
        ]
    return candidates


def _nest(points: Pointwise, choice: LayoutChoice) -> tuple[LoopDim, ...] | None:
    """The merged loop dims as `ElementwiseLoops` wants them; the innermost strides are 1 or 0.

    None if the layouts do not share their innermost dim, or have a padded tail.
    """
    order = choice.results[0]
    shape = points.shape
    if any(result != order for result in choice.results):
        return None
    if any(shape[dim] % order.block(dim) for dim in range(order.rank)):
        return None
    tensors = [(shape_of(leaf), choice.operands[leaf.index]) for leaf in points.leaves]
    strides = [strides_along(s, layout, order) for s, layout in tensors]
    strides += [_slice_strides(op, choice.operands, order) for op in points.slices]
    strides += [strides_along(shape, order, order)] * len(choice.results)
    if any(s is None for s in strides):
        return None
    columns = zip(*(s for s in strides if s is not None), strict=True)
    extents = order.storage_shape(shape)
    dims = merged([LoopDim(e, tuple(c)) for e, c in zip(extents, columns, strict=True)])
    dims = dims or (LoopDim(1, (1,) * len(strides)),)
    return dims if all(stride in (0, 1) for stride in dims[-1].strides) else None


def _operand_of(op: SliceOp) -> int:
    assert isinstance(op.input, BlockArgument)
    return op.input.index


def _slice_strides(
    op: SliceOp, operands: Sequence[Layout], order: Layout
) -> tuple[int, ...] | None:
    """Elements of the sliced operand per step along each storage dim of `order`.

    None where a step has no single stride: a slice out of a dim that is stored in blocks.
    """
    shape, layout = shape_of(op.input), operands[_operand_of(op)]
    sizes, steps = op.sizes.get_values(), op.strides.get_values()
    if any(layout.block(d) != 1 and sizes[d] != shape[d] for d in range(layout.rank)):
        return None
    strides = strides_along(shape, layout, order)
    if strides is None:
        return None
    return tuple(
        0 if sizes[target.dim] == 1 else stride * steps[target.dim]
        for stride, target in zip(strides, order.dims, strict=True)
    )


def _start(op: SliceOp, operands: Sequence[Layout]) -> int:
    """Elements of the operand before the first one of the slice."""
    shape, layout = shape_of(op.input), operands[_operand_of(op)]
    strides = strides_along(shape, layout, layout)
    assert strides is not None
    low = op.offsets.get_values()  # Of dims stored in blocks: 0.
    return sum(low[dim.dim] * s for dim, s in zip(layout.dims, strides, strict=True))
