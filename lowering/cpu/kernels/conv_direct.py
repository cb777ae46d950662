"""Direct convolution in NHWC with an elementwise epilogue, by the register tiles of GEMM.

A row of the contraction is an output position; the reduction runs over the window and the input
channels. Dims that are contiguous in memory are merged, so that a 1 × 1 convolution of stride 1
is one matrix product over all positions.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from braid.analysis.kernel_family import Kernel, KernelRequest, LayoutChoice, Schedule
from braid.analysis.tensor_storage import storage_bytes
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels import tiling
from braid.lowering.cpu.kernels.contraction import Contraction, ContractionKernel
from braid.lowering.cpu.kernels.conv_match import (
    CHANNELS_LAST,
    ConvMatch,
    leaf_layout,
    match_convolution,
    operand_layouts,
)
from braid.lowering.cpu.kernels.emit.function import grid_kernel
from braid.lowering.cpu.kernels.emit.machine import VectorUnit, host_vector_unit
from braid.lowering.cpu.kernels.iteration import (
    LoopDim,
    merged,
    row_major_strides,
    strides_along,
)
from braid.lowering.cpu.kernels.traffic import stored_bytes

_SCHEDULES = 64
"""Length of the schedule space: beyond it the model sees no chance."""


@dataclass(frozen=True)
class ConvDirectFamily:
    """`braid.conv` of f32 in two dims, without padding and groups, with an epilogue.

    Layouts: NHWC (`acdb`), the weight in blocks of output channels (`Acdb32a`).
    """

    unit: VectorUnit = field(default_factory=host_vector_unit)
    name: str = "conv-direct"

    def accepts(self, group: FusedOp) -> bool:
        """One convolution of block arguments, the rest elementwise on its result."""
        return _match(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """Blocks of output channels from best to worst."""
        match = _match(group)
        if match is None:
            return ()
        ranked = tiling.ranked_vectors(_size(match), self.unit)
        weights = [Layout.parse(f"Acdb{count * self.unit.lanes}a") for count in ranked]
        results = (CHANNELS_LAST,) * len(group.outputs)
        return [
            LayoutChoice(operand_layouts(group, match.input, match.weight, w), results)
            for w in weights
        ]

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Tiles that fit the block of output channels, by predicted time."""
        match = _match(group)
        assert match is not None
        weight = layout_of(group.inputs[match.weight.index].type)
        vectors = [weight.block(0) // self.unit.lanes]
        b_bytes = storage_bytes(match.weight.type, weight)
        return islice(tiling.schedules(_size(match), vectors, self.unit, b_bytes), _SCHEDULES)

    def default_schedule(self, group: FusedOp) -> Schedule:
        """The first of the schedules."""
        return next(self.schedules(group))

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        match = _match(group)
        assert match is not None
        vectors = choice.operands[match.weight.index].block(0) // self.unit.lanes
        return tiling.seconds(_size(match), vectors, self.unit, stored_bytes(group, choice))

    def emit(self, request: KernelRequest) -> Kernel:
        """One tile per grid iteration."""
        group = request.group
        match = _match(group)
        assert match is not None
        schedule = {**self.default_schedule(group), **request.schedule}
        tile = tiling.tile_of(schedule)
        problem = _contraction(match, tile.vectors * self.unit.lanes)
        outside = bool(schedule["columns_outside"])
        kernel = ContractionKernel(problem, tile, self.unit.lanes, outside)
        grid = math.prod(kernel.grid_extents)
        return grid_kernel(request, self.unit, grid, kernel.iteration, problem.in_place)


def _match(group: FusedOp) -> ConvMatch | None:
    match = match_convolution(group)
    return match if match is not None and match.op.groups.value.data == 1 else None


def _size(match: ConvMatch) -> tiling.ContractionSize:
    """Rows are the positions that one row dim holds after merging."""
    problem = _contraction(match, 1)
    rows = problem.row.extent
    row_bytes = 4 * problem.row.strides[0]
    return tiling.ContractionSize(
        batches=problem.rows // rows,
        rows=rows,
        columns=problem.columns,
        depth=problem.depth,
        row_bytes=row_bytes,
        constants=match.points.constants,
    )


def _contraction(match: ConvMatch, block: int) -> Contraction:
    """The loop dims and strides of the group, for blocks of `block` output channels."""
    points, windows = match.points, match.op.windows
    batch, channels, height, width = points.shape
    _, depth, in_height, in_width = shape_of(match.input)
    kh, kw = windows.size
    x_image, x_line, x_pixel, _ = row_major_strides((batch, in_height, in_width, depth))
    y_strides = row_major_strides((batch, height, width, channels))
    a_strides = (x_image, x_line * windows.strides[0], x_pixel * windows.strides[1])
    leaves = [_leaf_strides(match, number) for number in range(len(points.leaves))]
    columns = (a_strides, (0, 0, 0), *leaves, y_strides)
    dims = [
        LoopDim(extent, tuple(strides[dim] for strides in columns))
        for dim, extent in enumerate((batch, height, width))
    ]
    outer = merged(dims) or (LoopDim(1, (0,) * len(columns)),)
    line, pixel, _ = row_major_strides((kh, kw, depth * block))
    reduction = (
        LoopDim(kh, (x_line * windows.dilations[0], line)),
        LoopDim(kw, (x_pixel * windows.dilations[1], pixel)),
        LoopDim(depth, (1, block)),
    )
    return Contraction(
        outer=outer[:-1],
        row=outer[-1],
        reduction=merged(reduction) or (LoopDim(1, (1, block)),),
        columns=channels,
        columns_padded=True,
        block_stride=kh * kw * depth * block,
        a=match.input.index,
        b=match.weight.index,
        anchor=match.op.output,
        points=points,
        leaf_column_strides=tuple(strides[-1] for strides in leaves),
    )


def _leaf_strides(match: ConvMatch, number: int) -> tuple[int, ...]:
    """Strides of an operand of the epilogue along the stored dims of the result."""
    leaf = match.points.leaves[number]
    shape = shape_of(leaf)
    layout = CHANNELS_LAST if leaf is match.input else leaf_layout(shape, layout_of(leaf.type))
    strides = strides_along(shape, layout, CHANNELS_LAST)
    assert strides is not None
    return strides
