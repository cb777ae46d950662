"""Ops over windows of images, and the layouts in which their kernels take tensors. No IR."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.nests.dims import Stored
from braid.analysis.nests.pointwise import Pointwise
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.windows import Windows
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.targets.kernels.kernel_family import InPlace

MAX_UNROLLED_WINDOW = 16
"""Window columns that are unrolled, so that neighbouring outputs share loads."""

MAX_LINE_STRIDE = 2
"""Steps of windows along lines of vectors: every other element of two vectors is one shuffle."""

MOST_COLUMNS = 20
"""Columns of windows that are kept in registers, a vector each."""

NEAR_BYTES = 1 << 20
"""Half of the second-level cache: depthwise convolutions of 14² and 28² pixels below it take 10 to
40 % less time block by block where their operands are in caches, those above it 30 % more."""

Combine = Callable[[Emitter, Value, Value, Value | None], Value]
"""New accumulator from the old one, the input, and the weight if there is one."""

_Body = Callable[[Index, Sequence[Value]], Sequence[Value]]
Carry = Callable[[Emitter, int, int, int, Sequence[Value], _Body, int], Sequence[Value]]
"""A loop that carries values, as `carry_sums`."""


def _carry(
    e: Emitter, lower: int, upper: int, step: int, values: Sequence[Value], body: _Body, added: int
) -> Sequence[Value]:
    return e.carry(lower, upper, step, values, body)


@dataclass(frozen=True)
class ChannelGroups:
    """Every output channel of a group combines as many `inputs`; of these there are `outputs`."""

    inputs: int = 1
    outputs: int = 1

    @property
    def is_alone(self) -> bool:
        """Whether each channel is a group of its own."""
        return self.inputs == self.outputs == 1

    def inputs_of(self, outputs: int) -> int:
        """Input channels of the groups of so many output channels, which are whole groups."""
        return outputs // self.outputs * self.inputs


@dataclass(frozen=True)
class WindowProblem:
    """Every output is the `combine` of the inputs in its window, from `neutral` on.

    `x` and `weight` are numbers of kernel arguments; the weight is stored `[window…, channels]`
    or, for vectors along lines, `[channels, window…]`; with `groups` of several channels, `[blocks
    of a vector of outputs, window…, inputs of a group, outputs of the block]`. `stored` holds the
    input, the leaves of the epilogue, and the result: vectors of `lanes` channels, or of
    neighbouring pixels where the result is row-major, are contiguous in all of them, or repeated.
    `is_sum` says that `combine` adds to what begins as 0, `is_near` that the input has
    `NEAR_BYTES` at most.
    """

    anchor: SSAValue
    points: Pointwise
    windows: Windows
    stored: tuple[Stored, ...]
    lanes: int
    x: int
    weight: int | None
    neutral: float
    combine: Combine
    is_sum: bool
    is_near: bool
    groups: ChannelGroups

    @property
    def carry(self) -> Carry:
        """How loops carry values: long sums in parts."""
        return carry_sums if self.is_sum else _carry

    @property
    def input_strides(self) -> tuple[int, ...]:
        """Elements to the next image, along each spatial dim, and to the next vector of channels.

        Of the input: to what the next vector of output channels reads.
        """
        return self._strides(self.stored[0], self.groups.inputs_of(self.lanes))

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return math.prod(self.windows.size)

    @cached_property
    def joined(self) -> Windows:
        """The windows, with lines that lie behind each other in memory as one: of whole images."""
        windows, strides = self.windows, self.input_strides[1:-1]
        outer, length = len(windows.size) - 1, windows.size[-1]
        while outer and strides[outer - 1] == length * strides[-1]:
            if set(windows.dilations[outer - 1 :]) != {1}:
                break
            outer -= 1
            length *= windows.size[outer]
        return Windows(
            (*windows.size[:outer], length),
            (*windows.strides[:outer], windows.strides[-1]),
            (*windows.dilations[:outer], windows.dilations[-1]),
            (0,) * (outer + 1),
            (0,) * (outer + 1),
        )

    @property
    def is_short(self) -> bool:
        """Whether the innermost dim of windows is unrolled."""
        return self.joined.size[-1] <= MAX_UNROLLED_WINDOW

    def shared_pixels(self, count: int) -> list[int] | None:
        """Pixels of a line that so many neighbouring outputs read; see `pixels_to_share`.

        None where lines are joined, or pixels have weights that are others for each output.
        """
        if self.weight is not None or self.joined.size != self.windows.size:
            return None
        return pixels_to_share(self.windows, count)

    @property
    def output_strides(self) -> list[tuple[int, ...]]:
        """The same of the leaves of the epilogue, then of the result."""
        return [self._strides(tensor, self.lanes) for tensor in self.stored[1:]]

    @property
    def in_place(self) -> tuple[InPlace, ...]:
        """Operands of the epilogue that a result may overwrite: not the input of the windows."""
        *leaves, result = self.output_strides
        results = [result] * len(self.points.results)
        windowed = [leaf for leaf in self.points.leaves if leaf.index in (self.x, self.weight)]
        return self.points.in_place(leaves, results, windowed)

    def _strides(self, tensor: Stored, channels: int) -> tuple[int, ...]:
        vector = tensor.stride(1, channels) if tensor.stride(1) else 0
        spatial = (tensor.stride(dim) for dim in range(2, len(tensor.shape)))
        return tensor.stride(0), *spatial, vector


def pixels_to_share(windows: Windows, count: int) -> list[int] | None:
    """Pixels of a line that `count` neighbouring outputs read, where it pays to combine columns.

    What is combined down a column of one window serves all outputs whose windows have it: the
    separable form of a maximum or a sum. None where as much is combined by each on its own, or the
    columns are more than registers.
    """
    width, step, dilation = windows.size[-1], windows.strides[-1], windows.dilations[-1]
    if width > MOST_COLUMNS:
        return None
    pixels = sorted({o * step + x * dilation for o in range(count) for x in range(width)})
    alone = combinations(windows, count, None)
    pays = len(pixels) <= MOST_COLUMNS and combinations(windows, count, pixels) < alone
    return pixels if pays else None


def combinations(windows: Windows, count: int, pixels: Sequence[int] | None) -> int:
    """How often `count` outputs combine two vectors, sharing columns at `pixels` or nothing."""
    *lines, width = windows.size
    height = math.prod(lines)
    if pixels is None:
        return count * width * height
    return len(pixels) * height + count * (width - 1)


def stored_tensors(
    input: BlockArgument, points: Pointwise, choice: LayoutChoice
) -> tuple[Stored, ...] | None:
    """What `WindowProblem.stored` wants; None where vectors are not contiguous."""
    arguments = (input, *points.leaves)
    operands = [Stored(shape_of(a), choice.operands[a.index]) for a in arguments]
    tensors = (*operands, Stored(points.shape, choice.results[0]))
    dim = len(points.shape) - 1 if has_lines(points.shape, choice.results[0]) else 1
    return tensors if all(tensor.stride(dim) <= 1 for tensor in tensors) else None


def has_lines(shape: Sequence[int], layout: Layout) -> bool:
    """Whether vectors run along lines of a result: not where each is a single number."""
    return layout.is_row_major and shape[-1] > 1


def window_layouts(windows: Windows, shape: Sequence[int], lanes: int) -> list[Layout]:
    """The layouts that some kernel takes on both sides, the preferred one first.

    `shape` is that of the result.
    """
    rank = len(shape)
    layouts = [Layout.channels_last(rank)]
    if rank == 4 and shape[1] % lanes == 0:
        layouts.append(Layout.channel_blocks(rank, lanes))
    lines = Layout.row_major(rank)
    near = windows.strides[-1] <= MAX_LINE_STRIDE and windows.size[-1] <= MAX_UNROLLED_WINDOW
    if near and has_lines(shape, lines):
        layouts.append(lines)
    return layouts


def used_lanes(shape: Sequence[int], layout: Layout, lanes: int) -> float:
    """Which part of the lanes of vectors along channels, or along lines, holds a result."""
    extent = shape[-1] if has_lines(shape, layout) else shape[1]
    return extent / (-(-extent // lanes) * lanes)
