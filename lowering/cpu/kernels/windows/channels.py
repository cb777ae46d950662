"""Kernels over windows of images whose channels are neighbours: vectors run over channels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.lowering.cpu.kernels.pointwise.epilogue import (
    Accumulators,
    Epilogue,
    TileStore,
    tile_masks,
)
from braid.lowering.cpu.kernels.windows.problem import MAX_UNROLLED_WINDOW, WindowProblem

_NEAR_BYTES = 1 << 20
"""What the second-level cache holds: below it, depthwise convolutions of 14² and 28² pixels took
15 to 25 % less time block by block, above it, those of 56² and 112² pixels 5 to 20 % more."""


@dataclass(frozen=True)
class WindowChannels:
    """One grid iteration is a line of outputs for a block of channels.

    Tiles have `columns` neighbouring outputs and `vectors` vectors of channels.
    """

    problem: WindowProblem
    columns: int
    vectors: int

    @property
    def block(self) -> int:
        """Channels of a tile."""
        return self.vectors * self.problem.lanes

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Images, lines and blocks of channels, the farther apart ones outside."""
        batch, channels, height, _ = self.problem.points.shape
        blocks = -(-channels // self.block)
        return (batch, blocks, height) if self._blocks_outside else (batch, height, blocks)

    @property
    def _blocks_outside(self) -> bool:
        """Lines that windows share then stay in the nearest cache.

        Channels last, this reads memory in small pieces, which pays only near the core.
        """
        _, line, _, vector = self.problem.input_strides
        near = 4 * math.prod(self.problem.stored[0].shape) <= _NEAR_BYTES
        return near or vector > line

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """The tiles of a line, and a narrower one for the outputs that are left."""
        image, *inner = e.coordinates(index, self.grid_extents)
        block, line = inner if self._blocks_outside else reversed(inner)
        width = self.problem.points.shape[3]
        masks = tile_masks(e, self.problem.points.shape[1], block, self.vectors)

        def tile(column: Index, count: int) -> None:
            _TileWriter(self, e, buffers, (image, line, column), block, masks, count).write()

        whole = width - width % self.columns
        if whole:
            e.loop(0, whole, self.columns, lambda column: tile(column, self.columns))
        if whole < width:
            tile(whole, width - whole)


@dataclass(frozen=True)
class _TileWriter:
    """`count` outputs from `position` (image, line, column) on, in a block of channels."""

    kernel: WindowChannels
    e: Emitter
    buffers: Sequence[Buffer]
    position: tuple[Index, Index, Index]
    block: Index
    masks: Sequence[Value | None]
    count: int

    @property
    def first_vector(self) -> Index:
        """Number of the block's first vector of channels."""
        return self.e.mul(self.block, self.kernel.vectors)

    def write(self) -> None:
        """Runs over the window, applies the epilogue and stores."""
        e, problem = self.e, self.kernel.problem
        image, line, column = self.position
        down, right = problem.windows.strides
        start = (image, e.mul(line, down), e.mul(column, right), self.first_vector)
        tile = self._accumulate(e.dot(start, problem.input_strides))
        tensors = problem.output_strides
        epilogue = Epilogue(
            problem.anchor,
            problem.points,
            tuple(tensor[2] for tensor in tensors),
            tuple(tensor[3] for tensor in tensors),
        )
        bases = [e.dot(self.position, tensor[:3]) for tensor in tensors]
        TileStore(epilogue, e, self.buffers, bases, self.first_vector, self.masks).store(tile)

    def _accumulate(self, base: Index) -> Accumulators:
        """A loop over the window's lines, and over its columns where they are many."""
        e, problem, vectors = self.e, self.kernel.problem, self.kernel.vectors
        height, width = problem.windows.size
        line_stride = problem.input_strides[1] * problem.windows.dilations[0]
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
        _, _, pixel_stride, vector_step = problem.input_strides
        stride, dilation = problem.windows.strides[1], problem.windows.dilations[1]
        result = list(values)
        loaded: dict[tuple[Index, int], Value] = {}
        for x in columns:
            weights = [self._weight(e.add(tap, x), v) for v in range(vectors)]
            for output in range(self.count):
                pixel = e.add(e.mul(x, dilation), output * stride)
                for v in range(vectors):
                    if (pixel, v) not in loaded:
                        offset = e.add(e.add(start, e.mul(pixel, pixel_stride)), v * vector_step)
                        loaded[pixel, v] = self.buffers[problem.x].load(e, offset, self.masks[v])
                    place = output * vectors + v
                    result[place] = problem.combine(e, result[place], loaded[pixel, v], weights[v])
        return result

    def _weight(self, tap: Index, vector: int) -> Value | None:
        e, weight = self.e, self.kernel.problem.weight
        if weight is None:
            return None
        channel = e.mul(self.block, self.kernel.block)
        line = e.mul(tap, self.kernel.problem.points.shape[1])
        offset = e.add(e.add(line, channel), vector * e.lanes)
        return self.buffers[weight].load(e, offset, self.masks[vector])
