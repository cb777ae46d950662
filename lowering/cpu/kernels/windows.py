"""Kernels over windows of NHWC images, channel by channel: depthwise convolution and pooling."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from braid.analysis.kernel_family import InPlace
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.windows import Windows
from braid.lowering.cpu.kernels.aliasing import in_place_leaves
from braid.lowering.cpu.kernels.conv_match import CHANNELS_LAST, leaf_layout
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.lowering.cpu.kernels.epilogue import Accumulators, Epilogue, TileStore
from braid.lowering.cpu.kernels.iteration import row_major_strides, strides_along
from braid.lowering.cpu.kernels.pointwise import Pointwise

MAX_UNROLLED_WINDOW = 16
"""Window columns that are unrolled, so that neighbouring outputs share loads."""

Combine = Callable[[Emitter, Value, Value, Value | None], Value]
"""New accumulator from the old one, the input, and the weight if there is one."""


@dataclass(frozen=True)
class WindowProblem:
    """Every output is the `combine` of the inputs in its window, from `neutral` on.

    `x` and `weight` are numbers of kernel arguments; the weight is stored
    `[window…, channels]`. `input_shape` is the logical one, N, C, H, W.
    """

    anchor: SSAValue
    points: Pointwise
    windows: Windows
    input_shape: tuple[int, ...]
    x: int
    weight: int | None
    neutral: float
    combine: Combine

    @property
    def leaf_strides(self) -> list[tuple[int, ...]]:
        """Strides of the epilogue's operands along n, h, w, c."""
        result: list[tuple[int, ...]] = []
        for leaf in self.points.leaves:
            shape = shape_of(leaf)
            strides = strides_along(shape, leaf_layout(shape, layout_of(leaf.type)), CHANNELS_LAST)
            assert strides is not None
            result.append(strides)
        return result

    @property
    def result_strides(self) -> tuple[int, ...]:
        """Strides of the results along n, h, w, c."""
        batch, channels, height, width = self.points.shape
        return row_major_strides((batch, height, width, channels))

    @property
    def in_place(self) -> tuple[InPlace, ...]:
        """Operands of the epilogue that a result may overwrite: not the input of the windows."""
        results = [self.result_strides] * len(self.points.results)
        windowed = [leaf for leaf in self.points.leaves if leaf.index in (self.x, self.weight)]
        return in_place_leaves(self.points, self.leaf_strides, results, windowed)


@dataclass(frozen=True)
class WindowKernel:
    """One grid iteration is a line of outputs for a block of channels.

    Tiles have `columns` neighbouring outputs and `vectors` vectors of channels.
    """

    problem: WindowProblem
    columns: int
    vectors: int
    lanes: int

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Images, lines, blocks of channels."""
        batch, channels, height, _ = self.problem.points.shape
        return batch, height, -(-channels // (self.vectors * self.lanes))

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """The tiles of a line, and a narrower one for the outputs that are left."""
        image, line, block = e.coordinates(index, self.grid_extents)
        width = self.problem.points.shape[3]
        channel = e.mul(block, self.vectors * self.lanes)
        masks = self._masks(e, channel)

        def tile(column: Index, count: int) -> None:
            writer = _TileWriter(self, e, buffers, (image, line, column), channel, masks, count)
            writer.write()

        whole = width - width % self.columns
        if whole:
            e.loop(0, whole, self.columns, lambda column: tile(column, self.columns))
        if whole < width:
            tile(whole, width - whole)

    def _masks(self, e: Emitter, channel: Index) -> list[Value | None]:
        channels = self.problem.points.shape[1]
        if channels % (self.vectors * self.lanes) == 0:
            return [None] * self.vectors
        left = e.sub(channels, channel)
        return [e.mask(e.sub(left, vector * self.lanes)) for vector in range(self.vectors)]


@dataclass(frozen=True)
class _TileWriter:
    """`count` outputs from `position` (image, line, column) on."""

    kernel: WindowKernel
    e: Emitter
    buffers: Sequence[Buffer]
    position: tuple[Index, Index, Index]
    channel: Index
    masks: Sequence[Value | None]
    count: int

    def write(self) -> None:
        """Runs over the window, applies the epilogue and stores."""
        e, problem = self.e, self.kernel.problem
        points, windows = problem.points, problem.windows
        image, line, column = self.position
        _, depth, height, width = problem.input_shape
        start = (image, e.mul(line, windows.strides[0]), e.mul(column, windows.strides[1]))
        strides = row_major_strides((1, height, width, depth))
        base = e.add(e.dot(start, strides[:3]), self.channel)
        tile = self._accumulate(base, strides[1] * windows.dilations[0])
        tensors = [*problem.leaf_strides, problem.result_strides]
        bases = [e.dot(self.position, tensor[:3]) for tensor in tensors]
        epilogue = Epilogue(
            problem.anchor,
            points,
            tuple(tensor[2] for tensor in tensors),
            tuple(tensor[3] for tensor in tensors[:-1]),
        )
        TileStore(epilogue, e, self.buffers, bases, self.channel, self.masks).store(tile)

    def _accumulate(self, base: Index, line_stride: int) -> Accumulators:
        """A loop over the window's lines, and over its columns where they are many."""
        e, problem, vectors = self.e, self.kernel.problem, self.kernel.vectors
        height, width = problem.windows.size
        type = e.vector_type(self.buffers[problem.x].element_type)
        values: Sequence[Value] = [e.constant(problem.neutral, type)] * (self.count * vectors)

        def line(y: Index, values: Sequence[Value]) -> Sequence[Value]:
            start = e.add(base, e.mul(y, line_stride))
            tap = e.mul(y, width)
            if width <= MAX_UNROLLED_WINDOW:
                return self._columns(start, tap, range(width), values)
            return e.carry(0, width, 1, values, lambda x, v: self._columns(start, tap, [x], v))

        values = e.carry(0, height, 1, values, line)
        return [list(values[i * vectors : (i + 1) * vectors]) for i in range(self.count)]

    def _columns(
        self, start: Index, tap: Index, columns: Sequence[Index], values: Sequence[Value]
    ) -> Sequence[Value]:
        """Combines the inputs under some columns of a window's line, each loaded once."""
        e, problem, vectors = self.e, self.kernel.problem, self.kernel.vectors
        depth, channels = problem.input_shape[1], problem.points.shape[1]
        stride, dilation = problem.windows.strides[1], problem.windows.dilations[1]
        result = list(values)
        loaded: dict[tuple[Index, int], Value] = {}
        for x in columns:
            weights = [self._weight(e.add(tap, x), channels, v) for v in range(vectors)]
            for output in range(self.count):
                pixel = e.add(e.mul(x, dilation), output * stride)
                for v in range(vectors):
                    if (pixel, v) not in loaded:
                        offset = e.add(e.add(start, e.mul(pixel, depth)), v * e.lanes)
                        loaded[pixel, v] = self.buffers[problem.x].load(e, offset, self.masks[v])
                    place = output * vectors + v
                    result[place] = problem.combine(e, result[place], loaded[pixel, v], weights[v])
        return result

    def _weight(self, tap: Index, channels: int, vector: int) -> Value | None:
        e, weight = self.e, self.kernel.problem.weight
        if weight is None:
            return None
        offset = e.add(e.add(e.mul(tap, channels), self.channel), vector * e.lanes)
        return self.buffers[weight].load(e, offset, self.masks[vector])


def grid_size(kernel: WindowKernel) -> int:
    """Iterations of the kernel's grid."""
    return math.prod(kernel.grid_extents)
