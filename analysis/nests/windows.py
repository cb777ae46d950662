"""Windows of images: the inputs of each output, and their places in memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Attribute, BlockArgument, SSAValue

from braid.analysis.nests.dims import Stored, is_repeated
from braid.analysis.nests.pointwise import ExtentsOf, InPlace, Pointwise
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.windows import Windows
from braid.support.sizes.expression import Extent

RANKS = (3, 4, 5)
"""Dims of lines, images and volumes of several channels."""


@dataclass(frozen=True)
class WindowDim:
    """Element t of the window at position p is number p · stride + t · dilation along a dim.

    Those before `begin` and from `end` on are zeros. There are `size` elements and `positions`.
    """

    positions: int
    size: int
    stride: int
    dilation: int
    begin: int
    end: int

    @property
    def reaches_end(self) -> bool:
        """Return whether a window has elements from `end` on."""
        last = (self.positions - 1) * self.stride + (self.size - 1) * self.dilation
        return last >= self.end

    @property
    def share(self) -> float:
        """Return the part of all products that are not with zeros."""
        inside = sum(len(self.positions_of(element)) for element in range(self.size))
        return inside / (self.size * self.positions)

    def positions_of(self, element: int) -> range:
        """Return where this element of the windows lies in the image."""
        ahead = element * self.dilation
        first, end = (-((ahead - side) // self.stride) for side in (self.begin, self.end))
        return range(max(first, 0), max(min(end, self.positions), first, 0))


@dataclass(frozen=True)
class ChannelGroups:
    """Every output channel of a group combines as many `inputs`; of these there are `outputs`."""

    inputs: int = 1
    outputs: int = 1

    @property
    def is_alone(self) -> bool:
        """Return whether each channel is a group of its own."""
        return self.inputs == self.outputs == 1

    def inputs_of(self, outputs: int) -> int:
        """Return the input channels that a number of output channels read, as whole groups."""
        return outputs // self.outputs * self.inputs


@dataclass(frozen=True)
class WindowOp:
    """An op over unpadded windows of a block argument, whose result is `anchor`, and its epilogue.

    Beginning with `neutral`, the elementwise operation `combine` joins the elements of a window, or
    their products with the elements of `weight`. It computes in the type `accumulator`, if that is
    given.
    """

    anchor: SSAValue
    windows: Windows
    input: BlockArgument
    points: Pointwise
    combine: str
    neutral: float
    accumulator: Attribute | None
    weight: BlockArgument | None = None
    groups: ChannelGroups = ChannelGroups()

    @property
    def channels(self) -> int:
        """Return the output channels."""
        return self.points.shape[1]

    @property
    def width(self) -> int:
        """Return the outputs of a line."""
        return self.points.shape[-1]

    @property
    def steps(self) -> int:
        """Return how often `combine` is computed."""
        return math.prod((*self.points.shape, *self.windows.size))


@dataclass(frozen=True)
class WindowNest:
    """A `WindowOp` whose tensors lie such that vectors of `lanes` elements are contiguous.

    Vectors consist of channels, or of neighbouring pixels if the result is row-major. This holds
    for all of `stored`: the input, the leaves of the epilogue, and the result; or they are
    broadcast. The number of `images` may be open; so may the extents of images if vectors run along
    channels and the channels of neighbouring pixels are adjacent. The weight is stored `[window…,
    channels]` or, for vectors along lines, `[channels, window…]`; with groups of several channels,
    `[blocks of a vector of outputs, window…, inputs of a group, outputs of the block]`.
    """

    op: WindowOp
    images: Extent
    stored: tuple[Stored[Extent], ...]
    lanes: int

    @property
    def points(self) -> Pointwise:
        """Return the epilogue."""
        return self.op.points

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Return the extents of the result."""
        return self.stored[-1].shape

    @property
    def windows(self) -> Windows:
        """Return the windows."""
        return self.op.windows

    @property
    def groups(self) -> ChannelGroups:
        """Return the groups of channels."""
        return self.op.groups

    @property
    def has_lines(self) -> bool:
        """Return whether vectors run along lines."""
        return has_lines(self.points.shape, self.stored[-1].layout)

    @property
    def input_strides(self) -> tuple[Extent, ...]:
        """Return the elements to the next image, along each spatial dim, and to the next vector.

        The distance, in the input, to the elements that the next vector of output channels reads.
        """
        return _strides(self.stored[0], self.groups.inputs_of(self.lanes))

    @property
    def output_strides(self) -> list[tuple[Extent, ...]]:
        """Return the strides of the leaves of the epilogue, then of the result."""
        return [_strides(tensor, self.lanes) for tensor in self.stored[1:]]

    @cached_property
    def joined(self) -> Windows:
        """Return the windows with rows merged into whole images where rows are adjacent in
        memory."""
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
    def in_place(self) -> tuple[InPlace, ...]:
        """Return the operands of the epilogue that a result may overwrite: not those of windows."""
        *leaves, result = self.output_strides
        read = [value for value in (self.op.input, self.op.weight) if value is not None]
        return self.points.in_place(leaves, [result] * len(self.points.results), read)


def window_nest(
    op: WindowOp, choice: LayoutChoice, lanes: int, extents_of: ExtentsOf = shape_of
) -> WindowNest | None:
    """Return the nest in these layouts, with extents from `extents_of`.

    None where vectors of `lanes` elements have gaps, tensors are not known to be as large as each
    other, or vectors or pixels are not known to be a number of elements apart.
    """
    input = Stored(extents_of(op.input), choice.operands[op.input.index])
    outputs = op.points.stored(choice, extents_of)
    images, *_ = shape = outputs[-1].shape
    if images != input.shape[0] or not all(is_repeated(tensor.shape, shape) for tensor in outputs):
        return None
    tensors = (input, *outputs)
    nest = WindowNest(op, images, tensors, lanes)
    last = len(shape) - 1
    # A known stride is not enough, since a dim of extent 1 has one for any other dims.
    counted, walked = (range(1, last + 1), range(last + 1)) if nest.has_lines else ((1,), (1, last))
    for tensor in tensors:
        numbers = [tensor.shape[dim] for dim in counted] + [tensor.stride(dim) for dim in walked]
        if not all(isinstance(number, int) for number in numbers):
            return None
    dim = last if nest.has_lines else 1
    return nest if all(tensor.stride(dim) in (0, 1) for tensor in nest.stored) else None


def has_lines(shape: Sequence[int], layout: Layout) -> bool:
    """Return whether vectors run along lines of a result: not where each is a single number."""
    return layout.is_row_major and shape[-1] != 1


def _strides(tensor: Stored[Extent], channels: int) -> tuple[Extent, ...]:
    vector = tensor.stride(1, channels) if tensor.stride(1) != 0 else 0
    spatial = (tensor.stride(dim) for dim in range(2, len(tensor.shape)))
    return tensor.stride(0), *spatial, vector
