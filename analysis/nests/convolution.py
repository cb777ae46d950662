"""Convolutions as contractions, with vectors over output channels or over output positions.

Only addressing differs between layouts: elements of A are broadcast, wherever they lie, and
vectors of B and C are contiguous. Over channels, A is the input and B the weight in blocks of
output channels; over positions, A is the weight and B the input. Dims that are contiguous in
memory are merged, so that a 1 × 1 convolution of stride 1 is one matrix product over all positions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from xdsl.ir import BlockArgument

from braid.analysis.nests.contraction import Contraction, Framed, Product, has_types
from braid.analysis.nests.dims import LoopDim, Stored, is_repeated, merged
from braid.analysis.nests.pointwise import ExtentsOf, pointwise
from braid.analysis.nests.windows import RANKS, ChannelGroups, WindowDim, WindowOp
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.windows import Windows
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Convolution(Product):
    """A convolution of images, the left operand, with a weight."""

    op: ConvOp

    # Asked once for each of many layouts.
    @cached_property
    def windows(self) -> Windows:
        """Return the window of the convolution."""
        return self.op.windows

    @cached_property
    def taps(self) -> int:
        """Return the elements of the window."""
        return math.prod(self.windows.size)

    @cached_property
    def rank(self) -> int:
        """Return the dims of the input: images, channels, and one to three spatial ones."""
        return len(shape_of(self.left))

    @property
    def is_depthwise(self) -> bool:
        """Return whether every channel is convolved alone, into one."""
        return self.groups > 1 and self.depth == self.columns == 1

    @property
    def over_windows(self) -> WindowOp:
        """Return the sums of products of channels in groups."""
        return WindowOp(
            self.op.output,
            self.windows,
            self.left,
            self.points,
            combine="add",
            neutral=0,
            accumulator=self.op.accumulator,
            weight=self.right,
            groups=ChannelGroups(self.depth, self.columns),
        )

    @cached_property
    def windows_with_zeros(self) -> tuple[WindowDim | None, ...]:
        """Return the windows along each spatial dim; None where they read no zeros.

        Also along open dims, where all products are made.
        """
        return tuple(map(self._window_with_zeros, range(self.rank - 2)))

    def _window_with_zeros(self, dim: int) -> WindowDim | None:
        windows, (low, high) = self.windows, self.op.zeros
        extent, positions = shape_of(self.left)[2 + dim], self.points.shape[2 + dim]
        if DYNAMIC in (extent, positions):
            return None
        found = WindowDim(
            positions=positions,
            size=windows.size[dim],
            stride=windows.strides[dim],
            dilation=windows.dilations[dim],
            begin=low[dim],
            end=extent - high[dim],
        )
        return found if found.share < 1 else None


def convolution(
    group: FusedOp, accumulates: bool = False, *, is_open: bool = False
) -> Convolution | None:
    """Return the convolution of the group: one to three spatial dims, unpadded.

    Its element type is f32 or f64, or, if it `accumulates`, a narrower type with a wider
    accumulator. Static, or with any images of any extents if the group `is_open`.
    """
    convolutions = [op for op in group.body.block.ops if isinstance(op, ConvOp)]
    if len(convolutions) != 1:
        return None
    op = convolutions[0]
    x, w = op.input, op.weight
    if not isinstance(x, BlockArgument) or not isinstance(w, BlockArgument) or x is w:
        return None
    if not has_types(op, accumulates) or len(shape_of(x)) not in RANKS or op.windows.is_padded:
        return None
    points = pointwise(group, op, is_open=is_open)
    if points is None or w in points.leaves or (accumulates and x in points.leaves):
        return None
    _, channels, *_ = extents = shape_of(x)
    known = (extent for extent in extents if not (is_open and extent == DYNAMIC))
    if min(channels, *known, *shape_of(w)) <= 0:
        return None
    outputs, depth, *_ = shape_of(w)
    groups = op.groups.value.data
    return Convolution(op, x, w, points, groups, outputs // groups, depth)


@dataclass(frozen=True)
class ConvolutionLoops:
    """Return the strides of each dim of a convolution, in the layouts of `choice`.

    Vectors have `lanes` elements, and run over output positions where the result is row-major. A
    step of the reduction is over `step` input channels, which are neighbours in blocks of the
    weight. Products with the zeros that `framed` windows read, one for each spatial dim, are left
    out. Extents are those that `extents_of` gives: that of images may be open.
    """

    conv: Convolution
    choice: LayoutChoice
    lanes: int
    step: int = 1
    framed: tuple[WindowDim | None, ...] = ()
    extents_of: ExtentsOf = shape_of

    @property
    def over_positions(self) -> bool:
        """Return whether vectors run over output positions."""
        return self.choice.results[0].is_row_major

    @cached_property
    def input(self) -> Stored[Extent]:
        """Return the images in the order in which they are stored."""
        images = self.conv.left
        return Stored(self.extents_of(images), self.choice.operands[images.index])

    @cached_property
    def outputs(self) -> list[Stored[Extent]]:
        """Return the leaves of the epilogue, then the result, as they are stored."""
        return self.conv.points.stored(self.choice, self.extents_of)

    def contraction(self, block: int) -> Contraction[Extent] | None:
        """Return the loops with tiles of `block` columns.

        None where vectors have gaps, or tensors are not known to have as many images.
        """
        shape = self.outputs[-1].shape
        if shape[0] != self.input.shape[0] or not all(
            is_repeated(t.shape, shape) for t in self.outputs
        ):
            return None
        return self._over_positions(block) if self.over_positions else self._over_channels(block)

    def _over_channels(self, block: int) -> Contraction[Extent] | None:
        if any(tensor.stride(1) not in (0, 1) for tensor in self.outputs):
            return None
        conv, x, step = self.conv, self.input, self.step
        stored = self.choice.operands[conv.right.index].block(0)
        steps = -(-conv.depth // step)
        # Input channels lie in blocks, or are whole steps of one block.
        piece = x.layout.block(1) if x.layout.block(1) > step else steps * step
        channels = (
            LoopDim[Extent](steps * step // piece, (x.stride(1, piece), piece * stored)),
            LoopDim[Extent](piece // step, (x.stride(1, step), step * stored)),
        )
        tap = steps * step * stored
        of_group = conv.taps * steps * step * conv.columns
        outer, row, reduction, framed = self._loops(of_group, tap, channels)
        # Tiles are the blocks that the weight is stored in, or parts of the one of a group.
        is_packed = block == stored
        return Contraction(
            conv,
            outer=outer,
            row=row,
            reduction=reduction or (LoopDim[Extent](1, (step, step * stored)),),
            columns=conv.columns,
            columns_padded=is_packed or conv.columns % block == 0,
            block_stride=(conv.taps * steps if is_packed else 1) * block * step,
            column_stride=1,
            vector_steps=tuple(self._vector_step(tensor, 1) for tensor in self.outputs),
            framed=framed,
        )

    def _loops(
        self, of_group: int, tap: int, channels: Sequence[LoopDim[Extent]]
    ) -> tuple[
        tuple[LoopDim[Extent], ...],
        LoopDim[Extent],
        tuple[LoopDim[Extent], ...],
        tuple[Framed, ...],
    ]:
        """Return the outer dims, the row dim, and the reduction over windows and channels.

        In the weight, groups are `of_group` elements apart, and elements of the window `tap`.
        Framed dims stand alone.
        """
        spatial = range(2, self.conv.rank)
        windows = self.framed or (None,) * len(spatial)
        groups = merged([self._groups(self.input.stride(1, self.conv.depth), of_group)])
        nothing = LoopDim[Extent](1, (0,) * (2 + len(self.outputs)))
        loops, places = _apart(self._positions((0, *spatial), 0), [None, *windows])
        *outer, row = loops or (nothing,)
        taps = self._window(tap, 0)
        reduction, reduced = _apart([*taps, *channels], [*windows, *(None for _ in channels)])
        framed = tuple(
            Framed(len(groups) + dim, number, window)
            for window, dim, number in zip(filter(None, windows), places, reduced, strict=True)
        )
        return (*groups, *outer), row, reduction, framed

    def _over_positions(self, block: int) -> Contraction[Extent] | None:
        conv, x, channels = self.conv, self.input, shape_of(self.conv.right)[0]
        nothing = LoopDim[Extent](1, (0, 1, *(0 for _ in self.outputs[:-1]), 1))
        *lines, columns = merged(self._positions(range(2, conv.rank), 1)) or (nothing,)
        if columns.strides[-1] != 1 or any(stride not in (0, 1) for stride in columns.strides):
            return None
        group = self._groups(conv.columns, x.stride(1, conv.depth))
        row = LoopDim[Extent](conv.columns, (1, 0, *(tensor.stride(1) for tensor in self.outputs)))
        reduction = (
            LoopDim[Extent](conv.depth, (conv.taps * channels, x.stride(1))),
            *self._window(channels, 1),
        )
        return Contraction(
            conv,
            outer=(*merged([group, *self._positions((0,), 1)]), *lines),
            row=row,
            reduction=merged(reduction) or (LoopDim[Extent](1, (channels, 1)),),
            columns=columns.extent,
            columns_padded=columns.extent % block == 0,
            block_stride=block,
            column_stride=1,
            vector_steps=tuple(cast(int, self.lanes * stride) for stride in columns.strides[2:]),
            turned=True,
        )

    def _positions(self, dims: Sequence[int], x_place: int) -> list[LoopDim[Extent]]:
        """Return loops over the batch (0) and spatial dims; the input is tensor `x_place`."""
        loops: list[LoopDim[Extent]] = []
        for dim in dims:
            step = self.conv.windows.strides[dim - 2] if dim else 1
            product: list[Extent] = [0, 0]
            product[x_place] = self.input.stride(dim) * step
            outputs = [tensor.stride(dim) for tensor in self.outputs]
            loops.append(LoopDim[Extent](self.outputs[-1].shape[dim], (*product, *outputs)))
        return loops

    def _groups(self, a: Extent, b: Extent) -> LoopDim[Extent]:
        outputs = [tensor.stride(1, self.conv.columns) for tensor in self.outputs]
        return LoopDim[Extent](self.conv.groups, (a, b, *outputs))

    def _window(self, step: int, x_place: int) -> list[LoopDim[Extent]]:
        """Return loops over the window, whose neighbours are `step` apart in the weight."""
        windows, loops = self.conv.windows, list[LoopDim[Extent]]()
        for dim, (size, dilation) in enumerate(zip(windows.size, windows.dilations, strict=True)):
            strides: list[Extent] = [math.prod(windows.size[dim + 1 :]) * step] * 2
            strides[x_place] = self.input.stride(2 + dim) * dilation
            loops.append(LoopDim[Extent](size, (strides[0], strides[1])))
        return loops

    def _vector_step(self, tensor: Stored[Extent], dim: int) -> int:
        """Return the elements to the next vector along `dim`, 0 where the tensor is repeated."""
        step = tensor.stride(dim, self.lanes) if tensor.stride(dim) != 0 else 0
        return cast(int, step)  # channels and positions are known


def _apart(
    dims: Sequence[LoopDim[Extent]], windows: Sequence[WindowDim | None]
) -> tuple[tuple[LoopDim[Extent], ...], list[int]]:
    """Return `dims` merged but for those with a window, and where these are then."""
    result: list[LoopDim[Extent]] = []
    together: list[LoopDim[Extent]] = []
    places: list[int] = []
    for dim, window in zip(dims, windows, strict=True):
        if window is None:
            together.append(dim)
            continue
        result += merged(together)
        together.clear()
        places.append(len(result))
        result.append(dim)
    return (*result, *merged(together)), places
