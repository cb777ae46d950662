"""Groups of elementwise ops: one pass over memory, any DAG, several results."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import has_elements
from braid.analysis.nests.pointwise import (
    ExtentsOf,
    Pointwise,
    PointwiseNest,
    pointwise,
    pointwise_nest,
)
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import (
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, SizedFamily
from braid.lowering.cpu.kernels.pointwise.loops import (
    LoopSchedule,
    PointwiseLoops,
)
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.math.points import has_code
from braid.targets.kernels.kernel_family import Kernel

_MOST_UNROLLED = 32
"""Vectors, beyond which code grows and nothing else."""


@dataclass(frozen=True)
class ElementwiseFamily(SizedFamily):
    """Any group of elementwise ops on tensors, or slices of them, with one innermost dim.

    Layouts: row-major, channels last, and channel blocks that divide the channels; operands that
    extend along one dim at most stay row-major.
    """

    name: str = "elementwise"
    version: int = 11

    def match(
        self, group: FusedOp, extents_of: ExtentsOf = shape_of
    ) -> "ElementwiseCandidate | None":
        """Match ops on block arguments of any extents, in at least one layout."""
        is_open = all(has_elements(extents_of(value)) for value in group.terminator.arguments)
        points = pointwise(group, with_slices=True, is_open=is_open)
        if points is None or not (points.leaves or points.slices) or not has_code(points):
            return None
        candidate = ElementwiseCandidate(group, self.unit, points, extents_of)
        return candidate if candidate.layouts else None


@dataclass(frozen=True, eq=False)
class ElementwiseCandidate(ScheduledCandidate[LoopSchedule]):
    """The ops of a group, and the function that gives the extents of its tensors."""

    points: Pointwise
    extents_of: ExtentsOf

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts first: it costs no reorder at the model's edges."""
        layouts = _candidates(self.points.shape)
        choices = (uniform_choice(self.group, layout, {}) for layout in layouts)
        return [choice for choice in choices if self._nest(choice)]

    def _nest(self, choice: LayoutChoice) -> PointwiseNest | None:
        return pointwise_nest(self.points, choice, self.extents_of)

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous."""
        return self._nest(choice) is not None

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous."""
        return results_alike(choice) and self._nest(choice) is not None

    def space(self, level: int) -> Iterator[LoopSchedule]:
        """Return the vectors per iteration of the innermost loop: two hide the latency of
        polynomials.
        """
        for unroll in {0: (2,), 1: (1, 4), 2: (3, 8)}.get(level, ()):
            yield LoopSchedule(unroll)

    def supports_schedule(self, schedule: LoopSchedule) -> bool:
        """Take any unrolling within reason."""
        return 1 <= schedule.unroll <= _MOST_UNROLLED

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of memory traffic and arithmetic."""
        points = self.points
        arithmetic = points.flops * math.prod(points.shape) / (self.unit.flops / 2)
        return max(arithmetic, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: LoopSchedule) -> Kernel:
        """Emit loops over the merged dims, the outer ones in the grid."""
        nest = self._nest(stored_choice(self.group))
        assert nest is not None, "the family was asked for layouts it did not offer"
        loops = PointwiseLoops(nest, self.unit, schedule.unroll)
        body, in_place = loops.iteration, nest.in_place
        return grid_kernel(self.group, symbol, self.unit, loops.grid, body, in_place)


def _candidates(shape: Sequence[int]) -> list[Layout]:
    """Return the layouts of the results worth offering."""
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
