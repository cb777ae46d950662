"""Kernels over windows of images whose pixels are neighbours: vectors run along lines."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import Stored
from braid.lowering.cpu.kernels.pointwise.epilogue import Accumulators, Epilogue, TileStore
from braid.lowering.cpu.kernels.windows.channels import WindowChannels, over_lines
from braid.lowering.cpu.kernels.windows.problem import WindowProblem, has_lines
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import shuffled
from braid.targets.kernels.schedules import Schedule


@dataclass(frozen=True)
class WindowSchedule(Schedule):
    """The outputs of a tile: `columns` neighbours on a line, and `vectors` vectors of channels.

    Where vectors run along lines, `columns` is 1 and a tile has `vectors` vectors of neighbours.
    """

    columns: int
    vectors: int


@dataclass(frozen=True)
class WindowLines:
    """One grid iteration is a line of outputs of one channel, in tiles of `vectors` vectors.

    The weight is stored `[channels, window…]`.
    """

    problem: WindowProblem
    vectors: int

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Images, channels, lines."""
        return self.problem.points.shape[:-1]

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Tiles of whole vectors, then one for the outputs that are left."""
        position = e.coordinates(index, self.grid_extents)
        width, lanes = self.problem.points.shape[-1], self.problem.lanes
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
        """Runs over the window, applies the epilogue and stores."""
        e, problem = self.e, self.kernel.problem
        outputs = problem.stored[1:]
        epilogue = Epilogue(
            problem.anchor,
            problem.points,
            (0,) * len(outputs),
            tuple(e.lanes * tensor.stride(self._along) for tensor in outputs),
        )
        bases = [self._base(tensor) for tensor in outputs]
        masks = [self.e.tail_mask(count) for count in self.vectors]
        TileStore(epilogue, e, self.buffers, bases, 0, masks).store(self._accumulate())

    def _accumulate(self) -> Accumulators:
        """A loop over the window's lines, its columns unrolled."""
        e, problem = self.e, self.kernel.problem
        image, channel, *lines = self.position
        x, windows, along = problem.stored[0], problem.windows, self._along
        pixel, width = x.stride(along), windows.size[-1]
        steps = windows.strides
        starts = [e.mul(i, s) for i, s in zip(lines, steps[:-1], strict=True)]
        base = e.dot((image, channel, *starts), [x.stride(dim) for dim in range(along)])
        base = e.add(base, e.mul(self.first, steps[-1] * pixel))
        weight = e.mul(channel, math.prod(windows.size))
        type = e.vector_type(self.buffers[problem.x].element_type)
        initial: Sequence[Value] = [e.constant(problem.neutral, type)] * len(self.vectors)

        def taps(row: Index, place: Index, values: Sequence[Value]) -> Sequence[Value]:
            tap = e.add(weight, place)
            for column in range(width):
                offset = e.add(row, column * windows.dilations[-1] * pixel)
                values = self._tap(offset, e.add(tap, column), values)
            return values

        strides = [x.stride(dim) for dim in range(2, along)]
        return [list(over_lines(e, windows, strides, base, initial, taps, problem.carry))]

    def _tap(self, offset: Index, tap: Index, values: Sequence[Value]) -> list[Value]:
        e, problem = self.e, self.kernel.problem
        weight = None if problem.weight is None else self.buffers[problem.weight].splat(e, tap)
        step = e.lanes * problem.windows.strides[-1]
        return [
            problem.combine(e, value, self._load(e.add(offset, number * step), count), weight)
            for number, (value, count) in enumerate(zip(values, self.vectors, strict=True))
        ]

    def _load(self, offset: Index, count: int) -> Value:
        """Inputs of `count` neighbouring outputs, from the first one's on."""
        e, buffer = self.e, self.buffers[self.kernel.problem.x]
        stride, lanes = self.kernel.problem.windows.strides[-1], self.e.lanes
        needed = (count - 1) * stride + 1
        low = buffer.load(e, offset, self.e.tail_mask(needed))
        if stride == 1:
            return low
        high = low
        if needed > lanes:
            high = buffer.load(e, e.add(offset, lanes), self.e.tail_mask(needed - lanes))
        return shuffled(e, low, high, range(0, stride * lanes, stride))

    def _base(self, tensor: Stored) -> Index:
        """Where the first output is."""
        e = self.e
        along = self._along
        base = e.dot(self.position, [tensor.stride(dim) for dim in range(along)])
        return e.add(base, e.mul(self.first, tensor.stride(along)))


def window_kernel(problem: WindowProblem, schedule: WindowSchedule) -> WindowChannels | WindowLines:
    """The kernel for the result's layout: `columns` count only where vectors hold channels."""
    if has_lines(problem.points.shape, problem.stored[-1].layout):
        return WindowLines(problem, schedule.vectors)
    return WindowChannels(problem, schedule.columns, schedule.vectors)


def line_schedules(width: int, lanes: int, level: int) -> Iterator[WindowSchedule]:
    """Vectors along lines: at first as many independent sums as an add takes cycles."""
    longest = -(-width // lanes)
    default = min(4, longest)
    counts = {0: (default,), 1: (2, 1), 2: (3, 6, 8)}.get(level, ())
    for vectors in counts:
        if level == 0 or (vectors != default and vectors <= longest):
            yield WindowSchedule(1, vectors)
