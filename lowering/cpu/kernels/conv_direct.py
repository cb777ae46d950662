"""Direct convolution with an elementwise epilogue, by the register tiles of GEMM.

A row of the contraction is an output position; the reduction runs over the window and the input
channels. Dims that are contiguous in memory are merged, so that a 1 × 1 convolution of stride 1
is one matrix product over all positions. See `conv.contraction` for what layouts change.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.conv.contraction import POSITIONS_WEIGHT, ConvContraction
from braid.lowering.cpu.kernels.conv.match import ConvMatch, match_convolution
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel
from braid.lowering.cpu.kernels.groups.layout_choices import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    channel_blocks,
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.traffic import stored_bytes
from braid.lowering.cpu.kernels.groups.vector_family import VectorFamily
from braid.targets.kernels.kernel_family import Kernel, KernelRequest, Schedule

_FAR_CHANNELS_FACTOR = 1.15
"""Slowdown where the input's channels are a whole image apart."""

_LINES_FACTOR, _WINDOWED_LINES_FACTOR = 1.05, 1.15
"""How much slower vectors over positions are, measured: of one pixel, and of larger windows."""


@dataclass(frozen=True)
class ConvDirectFamily(VectorFamily):
    """`braid.conv` of f32 in two dims, without padding, not depthwise, with an epilogue.

    Layouts: row-major, channels last or in blocks of a vector (`aBcd16b`), the input and the
    result each in one of them, but a row-major result wants a row-major input. The weight is
    stored in blocks of output channels (`Acdb32a`; those of a group where there are several), or
    with output channels innermost (`bcda`) for a row-major result.
    """

    name: str = "conv-direct"

    def accepts(self, group: FusedOp) -> bool:
        """One convolution of block arguments, the rest elementwise on its result."""
        return _match(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """Channels last first, with blocks of output channels from best to worst."""
        match = _match(group)
        if match is None:
            return ()
        choices = [
            uniform_choice(group, target, {match.input.index: source, match.weight.index: weight})
            for source, target, weight in self._candidates(group, match)
        ]
        # An input that the epilogue reads too may not suit both ends.
        return [
            choice
            for choice in choices
            if ConvContraction(match, choice, self.unit.lanes).contraction(1) is not None
        ]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous; the weight is on its own."""
        match = _match(group)
        if match is None or choice.operands[match.weight.index].strides is not None:
            return False
        problem = ConvContraction(match, choice, self.unit.lanes)
        return results_alike(choice) and problem.contraction(1) is not None

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Tiles that fit the block of output channels, by predicted time."""
        match = _match(group)
        assert match is not None
        problem = ConvContraction(match, stored_choice(group), self.unit.lanes)
        b_bytes = 4 * math.prod(shape_of(group.body.block.args[_contraction(problem, 1).b]))
        return tiling.schedules(_size(problem), _vectors(problem), self.unit, b_bytes)

    def default_schedule(self, group: FusedOp) -> Schedule:
        """The first of the schedules."""
        return next(self.schedules(group))

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        match = _match(group)
        assert match is not None
        problem = ConvContraction(match, choice, self.unit.lanes)
        size, moved = _size(problem), stored_bytes(group, choice)
        best = min(tiling.seconds(size, v, self.unit, moved) for v in _vectors(problem))
        if problem.over_positions:
            windowed = match.op.windows.size != (1, 1)
            return best * (_WINDOWED_LINES_FACTOR if windowed else _LINES_FACTOR)
        far = choice.operands[match.input.index].is_row_major and match.depth > self.unit.lanes
        return best * _FAR_CHANNELS_FACTOR if far else best

    def emit(self, request: KernelRequest) -> Kernel:
        """One tile per grid iteration."""
        group, lanes = request.group, self.unit.lanes
        match = _match(group)
        assert match is not None
        schedule = self.schedule_of(request)
        tile = tiling.tile_of(schedule)
        problem = _contraction(
            ConvContraction(match, stored_choice(group), lanes), tile.vectors * lanes
        )
        kernel = ContractionKernel(problem, tile, lanes, bool(schedule["columns_outside"]))
        return grid_kernel(request, self.unit, kernel.grid, kernel.iteration, problem.in_place)

    def _candidates(
        self, group: FusedOp, match: ConvMatch
    ) -> Iterator[tuple[Layout, Layout, Layout]]:
        """Layouts of input, result and weight."""
        lanes = self.unit.lanes
        blocks = [match.columns]
        if match.groups == 1:
            fixed = {match.input.index: CHANNELS_LAST, match.weight.index: _packed(lanes)}
            choice = uniform_choice(group, CHANNELS_LAST, fixed)
            size = _size(ConvContraction(match, choice, lanes))
            blocks = [lanes * count for count in tiling.ranked_vectors(size, self.unit)]
        weights = [_packed(block) for block in blocks]
        for weight in weights:
            yield CHANNELS_LAST, CHANNELS_LAST, weight
        sources, targets = [CHANNELS_FIRST, CHANNELS_LAST], [CHANNELS_LAST]
        if match.depth % lanes == 0:
            sources.append(channel_blocks(lanes))
        if match.columns % lanes == 0:
            targets.append(channel_blocks(lanes))
        for source in sources:
            for target in targets:
                if (source, target) != (CHANNELS_LAST, CHANNELS_LAST):
                    yield source, target, weights[0]
        yield CHANNELS_FIRST, CHANNELS_FIRST, POSITIONS_WEIGHT


def _match(group: FusedOp) -> ConvMatch | None:
    match = match_convolution(group)
    return match if match is not None and not match.is_depthwise else None


def _packed(block: int) -> Layout:
    """The weight in blocks of output channels."""
    return Layout.parse(f"Acdb{block}a" if block > 1 else "acdb")


def _contraction(problem: ConvContraction, block: int) -> Contraction:
    result = problem.contraction(block)
    assert result is not None, "the family was asked for layouts it did not offer"
    return result


def _vectors(problem: ConvContraction) -> Sequence[int]:
    """Vectors per tile that the weight's layout allows."""
    if problem.over_positions or problem.match.groups > 1:
        return VECTORS
    block = problem.choice.operands[problem.match.weight.index].block(0)
    return [block // problem.lanes]


def _size(problem: ConvContraction) -> tiling.ContractionSize:
    """Rows are those that one row dim holds after merging."""
    contraction = _contraction(problem, 1)
    rows = contraction.row.extent
    return tiling.ContractionSize(
        batches=contraction.rows // rows,
        rows=rows,
        columns=contraction.columns,
        depth=contraction.depth,
        row_bytes=4 * contraction.row.strides[0],
        packed=True,
        constants=problem.match.points.constants,
    )
