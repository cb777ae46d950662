"""Convolutions, pools and products of TOSA, whose channels are the last dim."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_limits import require_table
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.passes.tosa.node import TosaNode, converter


def channels_first(t: TosaNode, value: SSAValue) -> SSAValue:
    """Return `[N, spatial…, C]` as `[N, C, spatial…]`."""
    rank = len(shape_of(value))
    return t.transpose(value, [0, rank - 1, *range(1, rank - 1)])


def channels_last(t: TosaNode, value: SSAValue) -> SSAValue:
    """Return `[N, C, spatial…]` as `[N, spatial…, C]`."""
    rank = len(shape_of(value))
    return t.transpose(value, [0, *range(2, rank), 1])


@converter("conv2d", "conv3d")
def convolution(t: TosaNode) -> SSAValue:
    """Convert a convolution, whose weights are `[O, window…, I]`."""
    return _with_bias(t, _convolve(t, channels_first(t, _weight(t)), groups=1))


@converter("depthwise_conv2d")
def depthwise_convolution(t: TosaNode) -> SSAValue:
    """Convert a depthwise convolution with weights `[KH, KW, C, M]`: M results for each channel."""
    weight = _weight(t)
    height, width, channels, multiplier = t.numbers(weight)
    ordered = t.transpose(weight, [2, 3, 0, 1])
    grouped = t.reshape(ordered, [channels * multiplier, 1, height, width])
    return _with_bias(t, _convolve(t, grouped, groups=channels))


@converter("transpose_conv2d")
def transposed_convolution(t: TosaNode) -> SSAValue:
    """Convert a transposed convolution with weights `[O, KH, KW, I]`; `out_pad` pads or cuts the
    result.
    """
    pads = t.integers("out_pad")
    top_left, bottom_right = pads[::2], pads[1::2]
    y = t.emit(
        ConvTransposeOp.get(
            channels_first(t, _input(t)),
            t.transpose(_weight(t), [3, 0, 1, 2]),
            strides=t.integers("stride"),
            pad_low=[max(-pad, 0) for pad in top_left],
            pad_high=[max(-pad, 0) for pad in bottom_right],
            dilations=[1, 1],
        )
    )
    low, high = ([0, 0, *(max(pad, 0) for pad in side)] for side in (top_left, bottom_right))
    return _with_bias(t, t.pad(y, low, high))


def _convolve(t: TosaNode, weight: SSAValue, groups: int) -> SSAValue:
    pads = t.integers("pad")
    return t.emit(
        ConvOp.get(
            channels_first(t, _input(t)),
            weight,
            strides=t.integers("stride"),
            pad_low=pads[::2],
            pad_high=pads[1::2],
            dilations=t.integers("dilation"),
            groups=groups,
        )
    )


def _input(t: TosaNode) -> SSAValue:
    return without_zero_point(t, t.value(0), t.zero_point(3))


def _weight(t: TosaNode) -> SSAValue:
    return without_zero_point(t, t.value(1), t.zero_point(4))


def without_zero_point(t: TosaNode, value: SSAValue, zero_point: int) -> SSAValue:
    """Return `value` in the element type of the result, from which the zero point is taken."""
    wide = t.cast(value, t.element_type)
    return t.apply("sub", wide, t.scalar(zero_point, wide)) if zero_point else wide


def _with_bias(t: TosaNode, value: SSAValue) -> SSAValue:
    bias = t.cast(t.value(2), element_type_of(value))
    rank = len(shape_of(value))
    shaped = t.reshape(bias, [1, t.extents(bias)[0], *[1] * (rank - 2)])
    return channels_last(t, t.apply("add", value, shaped))


@converter("max_pool2d")
def max_pool(t: TosaNode) -> SSAValue:
    """Return the largest element of every window."""
    t.require_nan_propagation()
    return channels_last(t, _pool(t, "max", channels_first(t, t.value(0))))


@converter("avg_pool2d")
def average_pool(t: TosaNode) -> SSAValue:
    """Return the mean of the elements of every window, without its padding."""
    x = channels_first(t, t.value(0))
    element_type = element_type_of(x)
    if not is_float(element_type):
        t.unsupported(
            f"means of {element_type}, whose rounding differs",
            hint="compute with floats instead",
        )
    # 16 bits may not hold the sum.
    total = _pool(t, "add", t.cast(x, f32) if element_type in (f16, bf16) else x)
    extents, results = (map(t.fixed, t.extents(value)[2:]) for value in (x, total))
    counts = _window_sizes(t, list(extents), list(results))
    divisor = t.constant(counts[None, None].astype(to_numpy(element_type_of(total))))
    return channels_last(t, t.cast(t.apply("div", total, divisor), element_type))


def _pool(t: TosaNode, kind: str, x: SSAValue) -> SSAValue:
    pads = t.integers("pad")
    return t.emit(
        PoolOp.get(
            x,
            kind,
            t.integers("kernel"),
            strides=t.integers("stride"),
            pad_low=pads[::2],
            pad_high=pads[1::2],
            dilations=[1, 1],
        )
    )


def _window_sizes(t: TosaNode, extents: Sequence[int], results: Sequence[int]) -> Array:
    """Return the elements of every window that are not padding."""
    fields = (t.integers("kernel"), t.integers("stride"), t.integers("pad")[::2])
    sizes: list[Array] = []
    require_table(math.prod(results), "elements of the windows")
    for extent, result, kernel, stride, pad in zip(extents, results, *fields, strict=True):
        first = np.arange(result) * stride - pad
        sizes.append(np.minimum(first + kernel, extent) - np.maximum(first, 0))
    return sizes[0][:, None] * sizes[1][None, :]


@converter("matmul")
def matmul(t: TosaNode) -> SSAValue:
    """Multiply batches of matrices; integers have zero points."""
    return _product(t, transpose=False)


@converter("matmul_t")
def matmul_transposed(t: TosaNode) -> SSAValue:
    """Multiply as `matmul` does, with the right operand transposed."""
    return _product(t, transpose=True)


def _product(t: TosaNode, *, transpose: bool) -> SSAValue:
    a = without_zero_point(t, t.value(0), t.zero_point(2))
    b = without_zero_point(t, t.value(1), t.zero_point(3))
    if transpose:
        b = t.transpose(b, [0, 2, 1])
    return t.emit(MatmulOp.on(a, b))
