"""Direct convolution with an elementwise epilogue, by the register tiles of GEMM.

A row of the contraction is an output position; the reduction runs over the window and the input
channels. Dims that are contiguous in memory are merged, so that a 1 × 1 convolution of stride 1
is one matrix product over all positions. See `conv.contraction` for what layouts change.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.contraction.tiling import TileSchedule
from braid.lowering.cpu.kernels.conv.contraction import ConvContraction
from braid.lowering.cpu.kernels.conv.match import ConvMatch, match_convolution
from braid.lowering.cpu.kernels.groups.layout_choices import (
    outputs_innermost,
    packed_weight,
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.kernels.kernel_family import Kernel

_FAR_CHANNELS_FACTOR = 1.15
"""Slowdown where the input's channels are a whole image apart."""

_LINES_FACTOR, _WINDOWED_LINES_FACTOR = 1.05, 1.15
"""How much slower vectors over positions are, measured: of one pixel, and of larger windows."""


@dataclass(frozen=True)
class ConvDirectFamily(VectorFamily):
    """`braid.conv` of f32 or f64 in one to three dims, unpadded, not depthwise, with an epilogue.

    Layouts: row-major, channels last or in blocks of a vector (`aBcd16b`), the input and the
    result each in one of them, but a row-major result wants a row-major input. The weight is
    stored in blocks of output channels (`Acdb32a`; those of a group where there are several), or
    with output channels innermost (`bcda`) for a row-major result.
    """

    name: str = "conv-direct"
    version: int = 14
    anchors: ClassVar = (ConvOp,)

    def match(self, group: FusedOp) -> "_Convolution | None":
        """One convolution of block arguments, the rest elementwise on its result."""
        found = match_convolution(group)
        if found is None or found.is_depthwise:
            return None
        return _Convolution(group, self.unit_of(found.op.output), found)


@dataclass(frozen=True, eq=False)
class _Convolution(ScheduledCandidate[TileSchedule]):
    found: ConvMatch
    dense: dict[LayoutChoice, ConvContraction] = field(
        default_factory=dict[LayoutChoice, ConvContraction]
    )
    """What there is to compute on tensors without strides, of what was asked so far."""

    def choices(self) -> Sequence[LayoutChoice]:
        """Channels last first, with blocks of output channels from best to worst."""
        # An input that the epilogue reads too may not suit both ends.
        return [choice for choice in self._candidates if self._problem(choice).narrow is not None]

    def offers(self, choice: LayoutChoice) -> bool:
        """As in `Candidate`."""
        dense = (each for each in self._candidates if each == choice)
        return any(self._problem(each).narrow is not None for each in dense)

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous; the weight is on its own."""
        if choice.operands[self.found.weight.index].strides is not None:
            return False
        return results_alike(choice) and self._problem(choice).narrow is not None

    def space(self, level: int) -> Iterator[TileSchedule]:
        """Tiles that fit the block of output channels, by predicted time."""
        problem = self._problem(stored_choice(self.group))
        b = self.group.body.block.args[_contraction(problem.narrow).b]
        b_bytes = self.unit.element_bytes * math.prod(shape_of(b))
        size, vectors = _size(problem, self.unit), _vectors(problem)
        return tiling.schedules(size, vectors, self.unit, b_bytes, level)

    def takes(self, schedule: TileSchedule) -> bool:
        """Any tile that fits."""
        problem = self._problem(stored_choice(self.group))
        return tiling.takes(schedule, _size(problem, self.unit), _vectors(problem), self.unit)

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        problem = self._problem(choice)
        best = self._best_tile(problem, self.moved_bytes(choice))
        if problem.over_positions:
            windowed = math.prod(self.found.windows.size) > 1
            return best * (_WINDOWED_LINES_FACTOR if windowed else _LINES_FACTOR)
        row_major = choice.operands[self.found.input.index].is_row_major
        far = row_major and self.found.depth > self.unit.lanes
        return best * _FAR_CHANNELS_FACTOR if far else best

    def emit(self, symbol: str, schedule: TileSchedule) -> Kernel:
        """One tile per grid iteration."""
        lanes, tile = self.unit.lanes, schedule.tile
        stored = self._problem(stored_choice(self.group))
        problem = _contraction(stored.contraction(tile.vectors * lanes))
        kernel = ContractionKernel(problem, tile, lanes, schedule.columns_outside)
        body, in_place = kernel.iteration, problem.in_place
        return grid_kernel(
            self.group, symbol, self.unit, kernel.grid, body, in_place, is_unrolled=True
        )

    def _problem(self, choice: LayoutChoice) -> ConvContraction:
        if any(layout.strides is not None for layout in (*choice.operands, *choice.results)):
            return self._framed(choice)
        if choice not in self.dense:
            self.dense[choice] = self._framed(choice)
        return self.dense[choice]

    def _framed(self, choice: LayoutChoice) -> ConvContraction:
        problem = ConvContraction(self.found, choice, self.unit.lanes)
        return problem.with_best_frame(lambda problem: self._best_tile(problem, 0))

    def _best_tile(self, problem: ConvContraction, moved_bytes: int) -> float:
        """Seconds of the best tile, or of memory where that is slower."""
        size, vectors = _size(problem, self.unit), _vectors(problem)
        return min(tiling.seconds(size, count, self.unit, moved_bytes) for count in vectors)

    @cached_property
    def _candidates(self) -> Sequence[LayoutChoice]:
        weight, input = self.found.weight.index, self.found.input.index
        return [
            uniform_choice(self.group, target, {input: source, weight: packed})
            for source, target, packed in self._layouts()
        ]

    def _layouts(self) -> Iterator[tuple[Layout, Layout, Layout]]:
        """Those of input, result and weight that may be offered."""
        found, rank, lanes = self.found, self.found.rank, self.unit.lanes
        first, last = Layout.row_major(rank), Layout.channels_last(rank)
        blocks = [found.columns]
        if found.groups == 1:
            fixed = {found.input.index: last, found.weight.index: packed_weight(rank, lanes)}
            size = _size(self._problem(uniform_choice(self.group, last, fixed)), self.unit)
            blocks = [lanes * count for count in tiling.ranked_vectors(size, self.unit)]
        weights = [packed_weight(rank, block) for block in blocks]
        for weight in weights:
            yield last, last, weight
        sources, targets = [first, last], [last]
        # Nothing else offers blocks of other ranks, so that each would cost a reorder.
        if rank == 4 and found.depth % lanes == 0:
            sources.append(Layout.channel_blocks(rank, lanes))
        if rank == 4 and found.columns % lanes == 0:
            targets.append(Layout.channel_blocks(rank, lanes))
        for source in sources:
            for target in targets:
                if (source, target) != (last, last):
                    yield source, target, weights[0]
        yield first, first, outputs_innermost(rank)


def _contraction(found: Contraction | None) -> Contraction:
    assert found is not None, "the family was asked for layouts it did not offer"
    return found


def _vectors(problem: ConvContraction) -> Sequence[int]:
    """Vectors per tile that the weight's layout allows."""
    if problem.over_positions or problem.match.groups > 1:
        return VECTORS
    block = problem.choice.operands[problem.match.weight.index].block(0)
    return [block // problem.lanes]


def _size(problem: ConvContraction, unit: VectorUnit) -> tiling.ContractionSize:
    """Rows are those that one row dim holds after merging."""
    contraction = _contraction(problem.narrow)
    rows = contraction.row.extent
    return tiling.ContractionSize(
        batches=contraction.rows // rows,
        rows=rows,
        columns=contraction.columns,
        depth=contraction.depth,
        row_bytes=unit.element_bytes * contraction.row.strides[0],
        packed=True,
        constants=problem.match.points.constants,
        share=contraction.share,
        window=contraction.row_window,
    )
