"""Kernels over windows of images whose channels are neighbours: vectors run over channels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from braid.dialects.braid.windows import Windows
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


Line = Callable[[Index, Index, Sequence[Value]], Sequence[Value]]
"""New values from where a line begins, the number of its first element in the window, and old
values."""


def over_lines(
    e: Emitter,
    windows: Windows,
    strides: Sequence[int],
    base: Index,
    values: Sequence[Value],
    line: Line,
) -> Sequence[Value]:
    """Carries `values` through all lines of a window that begins at `base`.

    `strides` are the elements to the next one along all spatial dims of the input but the last.
    """
    *outer, width = windows.size

    def dim(number: int, start: Index, place: Index, values: Sequence[Value]) -> Sequence[Value]:
        if number == len(outer):
            return line(start, e.mul(place, width), values)
        step = strides[number] * windows.dilations[number]

        def body(y: Index, values: Sequence[Value]) -> Sequence[Value]:
            inner = e.add(e.mul(place, outer[number]), y)
            return dim(number + 1, e.add(start, e.mul(y, step)), inner, values)

        return e.carry(0, outer[number], 1, values, body)

    return dim(0, base, 0, values)


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
        batch, channels, *lines, _ = self.problem.points.shape
        blocks = -(-channels // self.block)
        return (batch, blocks, *lines) if self._blocks_outside else (batch, *lines, blocks)

    @property
    def _blocks_outside(self) -> bool:
        """Lines that windows share then stay in the nearest cache.

        Channels last, this reads memory in small pieces, which pays only near the core.
        """
        strides = self.problem.input_strides
        near = 4 * math.prod(self.problem.stored[0].shape) <= _NEAR_BYTES
        return near or strides[-1] > strides[1]

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """The tiles of a line, and a narrower one for the outputs that are left."""
        image, *lines = e.coordinates(index, self.grid_extents)
        block = lines.pop(0 if self._blocks_outside else -1)
        width = self.problem.points.shape[-1]
        masks = tile_masks(e, self.problem.points.shape[1], block, self.vectors)

        def tile(column: Index, count: int) -> None:
            _TileWriter(self, e, buffers, (image, *lines, column), block, masks, count).write()

        whole = width - width % self.columns
        if whole:
            e.loop(0, whole, self.columns, lambda column: tile(column, self.columns))
        if whole < width:
            tile(whole, width - whole)


@dataclass(frozen=True)
class _TileWriter:
    """`count` outputs from `position` (image, …, line, column) on, in a block of channels."""

    kernel: WindowChannels
    e: Emitter
    buffers: Sequence[Buffer]
    position: tuple[Index, ...]
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
        image, *spatial = self.position
        starts = [e.mul(i, s) for i, s in zip(spatial, problem.windows.strides, strict=True)]
        start = (image, *starts, self.first_vector)
        tile = self._accumulate(e.dot(start, problem.input_strides))
        tensors = problem.output_strides
        epilogue = Epilogue(
            problem.anchor,
            problem.points,
            tuple(tensor[-2] for tensor in tensors),
            tuple(tensor[-1] for tensor in tensors),
        )
        bases = [e.dot(self.position, tensor[:-1]) for tensor in tensors]
        TileStore(epilogue, e, self.buffers, bases, self.first_vector, self.masks).store(tile)

    def _accumulate(self, base: Index) -> Accumulators:
        """Loops over the window's lines, and over its columns where they are many."""
        e, problem, vectors = self.e, self.kernel.problem, self.kernel.vectors
        width = problem.windows.size[-1]
        type = e.vector_type(self.buffers[problem.x].element_type)
        values: Sequence[Value] = [e.constant(problem.neutral, type)] * (self.count * vectors)

        def line(start: Index, tap: Index, values: Sequence[Value]) -> Sequence[Value]:
            if width <= MAX_UNROLLED_WINDOW:
                return self._columns(start, tap, range(width), values)
            return e.carry(0, width, 1, values, lambda x, v: self._columns(start, tap, [x], v))

        values = over_lines(e, problem.windows, problem.input_strides[1:-2], base, values, line)
        return [list(values[i * vectors : (i + 1) * vectors]) for i in range(self.count)]

    def _columns(
        self, start: Index, tap: Index, columns: Sequence[Index], values: Sequence[Value]
    ) -> Sequence[Value]:
        """Combines the inputs under some columns of a window's line, each loaded once."""
        e, problem, vectors = self.e, self.kernel.problem, self.kernel.vectors
        pixel_stride, vector_step = problem.input_strides[-2:]
        stride, dilation = problem.windows.strides[-1], problem.windows.dilations[-1]
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
