"""Describe what stages compute over windows: the lanes they combine, and with which weights."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid_hls.body import REDUCTIONS
from braid.dialects.braid_hls.stage import Loops, Pair
from braid.lowering.fpga.convert.scalars import type_limits
from braid.lowering.fpga.convert.shapes import pixels_of
from braid.lowering.fpga.convert.values import BodyBuilder, Integers, Lanes
from braid.support.errors import UnsupportedError

HEADS = (ConvOp, MatmulOp, PoolOp, ReduceOp)
"""Ops with windows; a stage has at most one of them."""

_ONE: Pair = (1, 1)
_NONE: Pair = (0, 0)


@dataclass(frozen=True)
class Head:
    """Channel c is `kind` over k of window lane `taps[c, k]`, times `weights[p, c, k]` if any.

    `loops` are without folds; window lanes are pixels by rows, and the channels of a pixel. Weights
    are of each pixel p of the image if `loops.over_image`, which `kind` goes over too.
    """

    op: Operation
    input: SSAValue
    loops: Loops
    taps: Integers
    weights: Integers | None
    kind: str
    pad_value: int

    @property
    def channels(self) -> int:
        """Channels of the result."""
        return self.taps.shape[0]

    @property
    def terms(self) -> int:
        """Return the number of terms that are combined for each channel in a window."""
        return self.taps.shape[1]

    def emit(self, builder: BodyBuilder, window: SSAValue) -> Lanes:
        """Return the ops for a group of channels. Raises UnsupportedError where sums exceed 32
        bits.
        """
        limits = type_limits(element_type_of(self.input))
        low, high = min(limits[0], self.pad_value), max(limits[1], self.pad_value)
        value = Lanes(builder.select(window, self.taps.reshape(1, 1, -1)), (low, high))
        if self.weights is not None:
            weights = self.weights
            ends = np.stack([weights * low, weights * high])
            least, most = ends.min(0), ends.max(0)
            table = builder.weights(weights.reshape(len(weights), 1, 1, -1), value.value)
            value = builder.compute("mul", [value, table], (int(least.min()), int(most.max())))
        else:
            pixels = self.loops.pixels if self.loops.over_image else 1
            least = np.full((pixels, *self.taps.shape), low)
            most = np.full((pixels, *self.taps.shape), high)
        if self.kind == "maximum":
            return builder.combine(self.kind, value, self.channels, (low, high))
        least, most = np.minimum(least, 0).sum((0, 2)), np.maximum(most, 0).sum((0, 2))
        sums = (int(least.min()), int(most.max()))
        if not -(1 << 31) <= sums[0] <= sums[1] < 1 << 31:
            raise UnsupportedError(
                f"sums from {sums[0]} to {sums[1]} in '{self.op.name}' on an FPGA",
                hint="they have to fit 32 bits; use fewer channels or smaller weights",
            )
        return builder.combine("add", value, self.channels, sums)


def head_of(
    op: Operation, weights: Integers | None, input: SSAValue, pads: tuple[Pair, Pair], pad: int
) -> Head:
    """Return the head of an op that reads `input` with `pads` before and after, filled with `pad`.

    Raises UnsupportedError for what windows of two spatial dims do not cover.
    """
    image, lanes = pixels_of(input)
    if isinstance(op, MatmulOp):
        return _matmul(op, input, image, lanes, weights)
    if isinstance(op, ReduceOp):
        return _reduce(op, input, image, lanes)
    assert isinstance(op, ConvOp | PoolOp)
    windows = op.windows
    if len(windows.size) != 2:
        raise UnsupportedError(f"{len(windows.size)} spatial dims in '{op.name}' on an FPGA")
    low = _pair(a + b for a, b in zip(windows.pad_low, pads[0], strict=True))
    loops = Loops(
        image,
        _pair(windows.size),
        _pair(windows.strides),
        _pair(windows.dilations),
        low,
        _pair(shape_of(op.results[0])[2:]),
        _ONE,
    )
    if fault := loops.fault():
        raise UnsupportedError(f"'{op.name}' on an FPGA: {fault}")
    size = windows.size[0] * windows.size[1]
    if isinstance(op, PoolOp):
        kind = op.combine
        taps = np.arange(lanes)[:, None] + np.arange(size)[None, :] * lanes
        return Head(op, input, loops, taps, None, kind, pad)
    assert weights is not None
    channels, depth = int(weights.shape[0]), int(weights.shape[1])
    taps = _taps(channels, depth, size, lanes, op.groups.value.data)
    by_pixel = weights.reshape(channels, depth, size).transpose(0, 2, 1).reshape(channels, -1)
    return Head(op, input, loops, taps, by_pixel[None], "add", pad)


def _taps(channels: int, depth: int, size: int, lanes: int, groups: int) -> Integers:
    """Return [channels, size · depth]: pixels of a window by rows, and the channels of a group in
    each.
    """
    first = np.arange(channels, dtype=np.int64) // (channels // groups) * depth
    within = np.arange(size)[:, None] * lanes + np.arange(depth)[None, :]
    return first[:, None] + within.reshape(1, -1)


def _pair(numbers: Iterable[int]) -> Pair:
    first, second = numbers
    return first, second


def pointwise(image: Pair) -> Loops:
    """Return a window of a single pixel."""
    return Loops(image, _ONE, _ONE, _ONE, _NONE, image, _ONE)


def whole_image(image: Pair) -> Loops:
    """Return a window of all pixels, which are read one by one, with one output."""
    return Loops(image, _ONE, _ONE, _ONE, _NONE, _ONE, _ONE, over_image=True)


def _matmul(
    op: MatmulOp, input: SSAValue, image: Pair, lanes: int, weights: Integers | None
) -> Head:
    """Return a matmul, whose rows are pixels; for a flattened feature map, sums are over the image.

    The rows of weights are in the order of the stream.
    """
    assert weights is not None
    if weights.ndim != 2:
        raise UnsupportedError(f"weights of rank {weights.ndim} in '{op.name}' on an FPGA")
    loops = pointwise(image)
    by_output = weights.T[None]
    if weights.shape[0] != lanes:
        loops = whole_image(image)
        by_output = weights.reshape(loops.pixels, lanes, -1).transpose(0, 2, 1)
    taps = np.broadcast_to(np.arange(lanes), by_output.shape[1:])
    return Head(op, input, loops, taps, by_output, "add", 0)


def _reduce(op: ReduceOp, input: SSAValue, image: Pair, lanes: int) -> Head:
    """Return a reduction over all pixels."""
    rank = len(shape_of(input))
    dims = tuple(sorted(dim % rank for dim in op.dims.get_values()))
    kind = op.kind.data
    if rank != 4 or dims != (2, 3) or kind not in REDUCTIONS:
        raise UnsupportedError(
            f"'{op.name}' of kind '{op.kind.data}' over dims {list(dims)} on an FPGA",
            hint="stages have sums and maxima over both spatial dims",
        )
    return Head(op, input, whole_image(image), np.arange(lanes)[:, None], None, kind, 0)
