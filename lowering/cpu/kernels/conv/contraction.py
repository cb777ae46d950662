"""A convolution as a contraction, with vectors over output channels or over output positions.

Only addressing differs between layouts: elements of A are broadcast, wherever they lie, and
vectors of B and C are contiguous. Over channels, A is the input and B the weight in blocks of
output channels; over positions, A is the weight and B the input.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from braid.analysis.nests.dims import LoopDim, Stored, merged
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.byte_pairs import columns_of_chunk
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.contraction.product import StoredProduct, loops_of
from braid.lowering.cpu.kernels.contraction.shuffled import Positions
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize
from braid.lowering.cpu.kernels.contraction.zeros import Framed, WindowDim
from braid.lowering.cpu.kernels.conv.match import ConvMatch

_FAR_CHANNELS_FACTOR = 1.15
"""Slowdown where the input's channels are a whole image apart."""

_LINES_FACTOR, _WINDOWED_LINES_FACTOR = 1.05, 1.15
"""How much slower vectors over positions are, measured: of one pixel, and of larger windows."""

_MOST_OF_A_LINE = 0.98
"""Of the products along a line those that are not with zeros, up to which the others are left out:
edges have code of their own, which gained nothing for 3 × 3 on 56 × 56 (0.988), and cost registers
for 7 × 7 on three channels of 224 × 224 (1.3 times the time)."""


@dataclass(frozen=True)
class ConvContraction(StoredProduct):
    """A convolution in some layouts.

    Vectors run over output positions where the result is row-major; else, if `framed`, products
    with the zeros that are known to be around the image are left out.
    """

    match: ConvMatch
    framed: bool = False

    @property
    def over_positions(self) -> bool:
        """Whether vectors run over output positions."""
        return self.choice.results[0].is_row_major

    @property
    def block(self) -> int:
        """As in the base class."""
        return self.choice.operands[self.match.weight.index].block(0)

    @property
    def size(self) -> ContractionSize:
        """As in the base class; rows are those that one row dim holds after merging."""
        loops = loops_of(self, 1)
        rows = loops.row.extent
        return ContractionSize(
            batches=loops.rows // rows,
            rows=rows,
            columns=loops.columns,
            depth=loops.depth,
            row_bytes=self._element_bytes * loops.row.strides[0],
            constants=self.match.points.constants,
            share=loops.share,
            window=loops.row_window,
        )

    @property
    def b_bytes(self) -> int:
        """As in the base class."""
        b = self.match.input if self.over_positions else self.match.weight
        return self._element_bytes * math.prod(shape_of(b))

    @property
    def _element_bytes(self) -> int:
        """Of floats; those of less bits count as bytes, for which tiles were measured."""
        return self.unit.element_bytes if self.step == 1 else 1

    @property
    def positions(self) -> Positions:
        """Those of the input."""
        depth = -(-self.match.depth // self.step) * self.step
        pitch = self._x.distance(self.match.rank - 1)
        return Positions(depth, pitch, columns_of_chunk(math.prod(self.match.windows.size)))

    @property
    def float_vectors(self) -> Sequence[int]:
        """As in the base class."""
        anyhow = self.over_positions or self.match.groups > 1
        return VECTORS if anyhow else [self.block // self.unit.lanes]

    @property
    def slowdown(self) -> float:
        """As in the base class."""
        if self.over_positions:
            windowed = math.prod(self.match.windows.size) > 1
            return _WINDOWED_LINES_FACTOR if windowed else _LINES_FACTOR
        row_major = self.choice.operands[self.match.input.index].is_row_major
        return _FAR_CHANNELS_FACTOR if row_major and self.match.depth > self.unit.lanes else 1.0

    def contraction(self, block: int) -> Contraction | None:
        """With tiles of `block` columns; None where a vector would not be contiguous."""
        return self._over_positions(block) if self.over_positions else self._over_channels(block)

    def with_best_frame(self, seconds: Callable[[Self], float]) -> Self:
        """Framed, unless this takes less `seconds`: framed dims are not merged with others."""
        if self.over_positions or not any(self._framed):
            return self
        framed = replace(self, framed=True)
        return self if framed.narrow is None else min((framed, self), key=seconds)

    @cached_property
    def _x(self) -> Stored:
        argument = self.match.input
        return Stored(shape_of(argument), self.choice.operands[argument.index])

    @cached_property
    def _outputs(self) -> list[Stored]:
        """The leaves of the epilogue, then the result."""
        points, operands = self.match.points, self.choice.operands
        leaves = [Stored(shape_of(leaf), operands[leaf.index]) for leaf in points.leaves]
        return [*leaves, Stored(points.shape, self.choice.results[0])]

    @property
    def _spatial(self) -> range:
        return range(2, self.match.rank)

    def _positions(self, dims: Sequence[int], x_place: int) -> list[LoopDim]:
        """Loops over the batch (0) and spatial dims; the input is tensor number `x_place`."""
        loops: list[LoopDim] = []
        for dim in dims:
            step = self.match.windows.strides[dim - 2] if dim else 1
            product = [0, 0]
            product[x_place] = self._x.stride(dim) * step
            outputs = [tensor.stride(dim) for tensor in self._outputs]
            loops.append(LoopDim(self.match.points.shape[dim], (*product, *outputs)))
        return loops

    def _channel_groups(self, a: int, b: int) -> LoopDim:
        columns = self.match.columns
        outputs = [tensor.stride(1, columns) for tensor in self._outputs]
        return LoopDim(self.match.groups, (a, b, *outputs))

    def _window(self, step: int, x_place: int) -> list[LoopDim]:
        """Loops over the window, of which neighbours are `step` elements apart in the weight."""
        windows, loops = self.match.windows, list[LoopDim]()
        for dim, (size, dilation) in enumerate(zip(windows.size, windows.dilations, strict=True)):
            strides = [math.prod(windows.size[dim + 1 :]) * step] * 2
            strides[x_place] = self._x.stride(2 + dim) * dilation
            loops.append(LoopDim(size, (strides[0], strides[1])))
        return loops

    def _over_channels(self, block: int) -> Contraction | None:
        match, x = self.match, self._x
        weight = self.choice.operands[match.weight.index].block(0)
        depth, taps = match.depth, math.prod(match.windows.size)
        if any(tensor.stride(1) > 1 for tensor in self._outputs):
            return None
        if self.step > 1:
            return self._by_steps(block)
        group = self._channel_groups(x.stride(1, depth), taps * depth * match.columns)
        piece = x.layout.block(1) if x.layout.block(1) > 1 else depth
        channels = (
            LoopDim(depth // piece, (x.stride(1, piece), piece * weight)),
            LoopDim(piece, (x.stride(1), weight)),
        )
        packed = match.groups == 1
        outer, row, reduction, framed = self._loops(group, depth * weight, channels)
        return Contraction(
            outer=outer,
            row=row,
            reduction=reduction or (LoopDim(1, (1, weight)),),
            columns=match.columns,
            columns_padded=packed or match.columns % block == 0,
            block_stride=taps * depth * block if packed else block,
            a=match.input.index,
            b=match.weight.index,
            anchor=match.op.output,
            points=match.points,
            vector_steps=tuple(self._step(tensor, 1) for tensor in self._outputs),
            framed=framed,
        )

    def _loops(
        self, group: LoopDim, step: int, channels: Sequence[LoopDim]
    ) -> tuple[tuple[LoopDim, ...], LoopDim, tuple[LoopDim, ...], tuple[Framed, ...]]:
        """Outer dims, the row dim, and the reduction over windows, of which neighbours are `step`
        elements apart in the weight, and then channels; framed dims stand alone."""
        windows = self._framed if self.framed else [None] * len(self._spatial)
        groups, nothing = merged([group]), LoopDim(1, (0,) * (2 + len(self._outputs)))
        positions = self._positions((0, *self._spatial), 0)
        loops, places = _apart(positions, [None, *windows])
        *outer, row = loops or (nothing,)
        taps = self._window(step, 0)
        reduction, reduced = _apart([*taps, *channels], [*windows, *(None for _ in channels)])
        framed = tuple(
            Framed(len(groups) + dim, number, window)
            for window, dim, number in zip(filter(None, windows), places, reduced, strict=True)
        )
        return (*groups, *outer), row, reduction, framed

    @cached_property
    def _framed(self) -> list[WindowDim | None]:
        """The windows along each spatial dim along which they read zeros."""
        windows, (low, high) = self.match.windows, self.match.op.zeros
        found: list[WindowDim | None] = []
        for dim, extent in enumerate(shape_of(self.match.input)[2:]):
            window = WindowDim(
                positions=self.match.points.shape[2 + dim],
                size=windows.size[dim],
                stride=windows.strides[dim],
                dilation=windows.dilations[dim],
                begin=low[dim],
                end=extent - high[dim],
            )
            most = _MOST_OF_A_LINE if dim == len(low) - 1 else 1.0
            found.append(window if window.share < most else None)
        return found

    def _by_steps(self, block: int) -> Contraction:
        """Channels last, the weight in blocks of output channels and of a step's input ones.

        Blocks that tiles do not fill are those of a group.
        """
        match, x, taps = self.match, self._x, math.prod(self.match.windows.size)
        stored = self.choice.operands[match.weight.index].block(0)
        packed, width = stored % self.unit.lanes == 0, stored * self.step
        steps = -(-match.depth // self.step)
        group = self._channel_groups(match.depth, taps * steps * self.step * match.columns)
        channels = [LoopDim(steps, (x.stride(1, self.step), width))]
        outer, row, reduction, framed = self._loops(group, steps * width, channels)
        return Contraction(
            outer=outer,
            row=row,
            reduction=reduction or (LoopDim(1, (self.step, width)),),
            columns=match.columns,
            columns_padded=packed or match.columns % block == 0,
            block_stride=(taps * steps if packed else 1) * block * self.step,
            a=match.input.index,
            b=match.weight.index,
            anchor=match.op.output,
            points=match.points,
            vector_steps=tuple(self._step(tensor, 1) for tensor in self._outputs),
            framed=framed,
        )

    def _over_positions(self, block: int) -> Contraction | None:
        match, x, channels = self.match, self._x, shape_of(self.match.weight)[0]
        depth, taps = match.depth, math.prod(match.windows.size)
        nothing = LoopDim(1, (0, 1, *(0 for _ in self._outputs[:-1]), 1))
        *lines, columns = merged(self._positions(self._spatial, 1)) or (nothing,)
        if columns.strides[-1] != 1 or any(stride > 1 for stride in columns.strides):
            return None
        group = self._channel_groups(match.columns, x.stride(1, depth))
        row = LoopDim(match.columns, (1, 0, *(tensor.stride(1) for tensor in self._outputs)))
        reduction = (
            LoopDim(depth, (taps * channels, x.stride(1))),
            *self._window(channels, 1),
        )
        return Contraction(
            outer=(*merged([group, *self._positions((0,), 1)]), *lines),
            row=row,
            reduction=merged(reduction) or (LoopDim(1, (channels, 1)),),
            columns=columns.extent,
            columns_padded=columns.extent % block == 0,
            block_stride=block,
            a=match.weight.index,
            b=match.input.index,
            anchor=match.op.output,
            points=match.points,
            vector_steps=tuple(self.unit.lanes * stride for stride in columns.strides[2:]),
        )

    def _step(self, tensor: Stored, dim: int) -> int:
        """Elements to the next vector along `dim`, 0 where the tensor is repeated."""
        return tensor.stride(dim, self.unit.lanes) if tensor.stride(dim) else 0


def _apart(
    dims: Sequence[LoopDim], windows: Sequence[WindowDim | None]
) -> tuple[tuple[LoopDim, ...], list[int]]:
    """`dims` merged but for those with a window, and where these are then."""
    result: list[LoopDim] = []
    together: list[LoopDim] = []
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
