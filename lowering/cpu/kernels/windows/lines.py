"""Kernels over windows of images whose pixels are neighbours: vectors run along lines."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import Stored
from braid.analysis.nests.windows import WindowNest
from braid.lowering.cpu.kernels.pointwise.epilogue import Accumulators, Epilogue, TileStore
from braid.lowering.cpu.kernels.windows.channels import WindowChannels, over_lines
from braid.lowering.cpu.kernels.windows.combination import Combination
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import shuffled
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of
from braid.targets.kernels.schedules import Schedule


@dataclass(frozen=True)
class WindowSchedule(Schedule):
    """The outputs of a tile: `columns` neighbours on a line, and `vectors` vectors of channels.

    If vectors run along rows, `columns` is 1 and a tile has `vectors` vectors of neighbours.
    """

    columns: int
    vectors: int


@dataclass(frozen=True)
class WindowLines:
    """One grid iteration is a line of outputs of one channel, in tiles of `vectors` vectors.

    The weight is stored `[channels, window…]`.
    """

    nest: WindowNest
    combination: Combination
    vectors: int

    @property
    def grid_extents(self) -> tuple[Extent, ...]:
        """Images, channels, lines."""
        return (self.nest.images, *self.nest.points.shape[1:-1])

    @property
    def grid(self) -> Extent:
        """Iterations of the grid."""
        return product_of(self.grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Compute tiles of whole vectors, then one for the outputs that are left."""
        position = e.coordinates(index, self.grid_extents)
        width, lanes = self.nest.op.width, self.nest.lanes
        block = self.vectors * lanes
        whole = width - width % block

        def tile(first: Index, count: int) -> None:
            _LineWriter(self, e, buffers, position, first, count).write()

        if whole:
            e.loop(0, whole, block, lambda column: tile(column, block))
        if whole < width:
            tile(whole, width - whole)


@dataclass(frozen=True)
class _LineWriter:
    """`count` outputs from column `first` on; `position` is image, channel and lines."""

    kernel: WindowLines
    e: Emitter
    buffers: Sequence[Buffer]
    position: Sequence[Index]
    first: Index
    count: int

    @property
    def vectors(self) -> list[int]:
        """Outputs in each vector."""
        lanes = self.e.lanes
        return [min(lanes, self.count - start) for start in range(0, self.count, lanes)]

    @property
    def _along(self) -> int:
        """The dim that vectors run along."""
        return len(self.position)

    def write(self) -> None:
        """Run over the window, apply the epilogue and store."""
        e, nest = self.e, self.kernel.nest
        outputs = nest.stored[1:]
        epilogue = Epilogue(
            nest.op.anchor,
            nest.points,
            (0,) * len(outputs),
            tuple(e.lanes * tensor.stride(self._along) for tensor in outputs),
        )
        bases = [self._base(tensor) for tensor in outputs]
        masks = [self.e.tail_mask(count) for count in self.vectors]
        TileStore(epilogue, e, self.buffers, bases, 0, masks).store(self._accumulate())

    def _accumulate(self) -> Accumulators:
        """Return a loop over the window's rows, with its columns unrolled."""
        e, nest = self.e, self.kernel.nest
        image, channel, *lines = self.position
        x, windows, along = nest.stored[0], nest.windows, self._along
        pixel, width = x.stride(along), windows.size[-1]
        steps = windows.strides
        starts = [e.mul(i, s) for i, s in zip(lines, steps[:-1], strict=True)]
        base = e.dot((image, channel, *starts), [x.stride(dim) for dim in range(along)])
        base = e.add(base, e.mul(self.first, steps[-1] * pixel))
        weight = e.mul(channel, math.prod(windows.size))
        type = e.vector_type(self.buffers[nest.op.input.index].element_type)
        initial: Sequence[Value] = [e.constant(nest.op.neutral, type)] * len(self.vectors)

        def taps(row: Index, place: Index, values: Sequence[Value]) -> Sequence[Value]:
            tap = e.add(weight, place)
            for column in range(width):
                offset = e.add(row, column * windows.dilations[-1] * pixel)
                values = self._tap(offset, e.add(tap, column), values)
            return values

        strides = [x.stride(dim) for dim in range(2, along)]
        carry = self.kernel.combination.carry
        return [list(over_lines(e, windows, strides, base, initial, taps, carry))]

    def _tap(self, offset: Index, tap: Index, values: Sequence[Value]) -> list[Value]:
        e, nest = self.e, self.kernel.nest
        combine, argument = self.kernel.combination.combine, nest.op.weight
        weight = None if argument is None else self.buffers[argument.index].splat(e, tap)
        step = e.lanes * nest.windows.strides[-1]
        return [
            combine(e, value, self._load(e.add(offset, number * step), count), weight)
            for number, (value, count) in enumerate(zip(values, self.vectors, strict=True))
        ]

    def _load(self, offset: Index, count: int) -> Value:
        """Return inputs of `count` neighbouring outputs, from the first one's on."""
        e, buffer = self.e, self.buffers[self.kernel.nest.op.input.index]
        stride, lanes = self.kernel.nest.windows.strides[-1], self.e.lanes
        needed = (count - 1) * stride + 1
        low = buffer.load(e, offset, self.e.tail_mask(needed))
        if stride == 1:
            return low
        high = low
        if needed > lanes:
            high = buffer.load(e, e.add(offset, lanes), self.e.tail_mask(needed - lanes))
        return shuffled(e, low, high, range(0, stride * lanes, stride))

    def _base(self, tensor: Stored[Extent]) -> Index:
        """Return where the first output is."""
        e = self.e
        along = self._along
        base = e.dot(self.position, [tensor.stride(dim) for dim in range(along)])
        return e.add(base, e.mul(self.first, tensor.stride(along)))


def window_kernel(
    nest: WindowNest, schedule: WindowSchedule, *, is_near: bool
) -> WindowChannels | WindowLines:
    """Return the kernel for the result's layout: `columns` count only for vectors of channels."""
    combination = Combination.of(nest.op)
    if nest.has_lines:
        return WindowLines(nest, combination, schedule.vectors)
    return WindowChannels(nest, combination, is_near, schedule.columns, schedule.vectors)


def line_schedules(width: int, lanes: int, level: int) -> Iterator[WindowSchedule]:
    """Return schedules with vectors along lines, first with as many independent sums as an add
    takes cycles.
    """
    longest = -(-width // lanes)
    default = min(4, longest)
    counts = {0: (default,), 1: (2, 1), 2: (3, 6, 8)}.get(level, ())
    for vectors in counts:
        if level == 0 or (vectors != default and vectors <= longest):
            yield WindowSchedule(1, vectors)
