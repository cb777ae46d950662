"""Gathers at known positions: paddings by reflection, edges and turns, as copies of runs.

A run is an arithmetic progression, such as a mirrored border: steps of 1 are copies by vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith

from braid.analysis.nests.dims import LoopDim, merged, row_major_strides
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.runs import KnownGatherNest, Run, known_gather_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.copies.strided import copy_loops
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_BROKEN = 1.3
"""Slowdown of a copy in pieces."""


@dataclass(frozen=True)
class KnownGatherFamily(SizedFamily):
    """Gathers of numbers at constant positions alone in their group, row-major.

    A gather along one dim, or a chain of gathers.
    """

    name: str = "known-gather"
    version: int = 3
    anchors: ClassVar = (GatherOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "KnownGather | None":
        """Return a chain from the operand to the result, of few runs along each dim."""
        nest = known_gather_nest(group, extents_of)
        return None if nest is None else KnownGather(group, self.unit, nest)


@dataclass(frozen=True, eq=False)
class KnownGather(VectorCandidate):
    """The runs of positions along each dim."""

    nest: KnownGatherNest

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of its memory traffic."""
        return _BROKEN * self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one row of the last gathered dim, including the dims inside of it, in each
        iteration."""
        nest, row, result = self.nest, self.nest.row, self.nest.result
        strides = (row_major_strides(nest.shape)[:row], row_major_strides(result)[:row])
        inner = product_of(nest.shape[row + 1 :])

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            point = e.coordinates(index, result[:row])
            read = [_position(e, i, runs) for i, runs in zip(point, nest.runs, strict=False)]
            source, target = e.dot(read, strides[0]), e.dot(point, strides[1])
            for run in nest.runs[row]:
                at = (e.add(source, run.first * inner), e.add(target, run.begin * inner))
                along = LoopDim[Extent](run.count, (run.step * inner, inner))
                dims = merged([along, LoopDim[Extent](inner, (1, 1))])
                copy_loops(e, dims or (LoopDim(1, (1, 1)),), (buffers[0], buffers[-1]), at)

        grid = product_of(result[:row])
        return grid_kernel(self.group, symbol, self.unit, grid, iteration)


def _position(e: Emitter, index: Index, runs: Sequence[Run]) -> Index:
    """Return the element that is read for an index of the result."""

    def within(run: Run) -> Index:
        return e.add(e.mul(index, run.step), run.first - run.step * run.begin)

    found = within(runs[0])
    for run in runs[1:]:
        if isinstance(index, int):
            found = within(run) if index >= run.begin else found
            continue
        is_within = e.insert(arith.CmpiOp(e.index(index), e.index(run.begin), "uge"))
        pair = (e.index(within(run)), e.index(found))
        found = e.insert(arith.SelectOp(is_within, *pair))
    return found
