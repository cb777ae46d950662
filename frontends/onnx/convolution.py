"""Convolution."""

from typing import cast

import numpy as np
from xdsl.ir import OpResult, SSAValue

from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.numpy_functions import wide
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, reshape
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer
from braid.frontends.onnx.windows import window_attributes


@importer("Conv")
def convolution(b: Builder, node: Node) -> SSAValue:
    """`braid.conv`, then an add of the bias as `[1, C, 1…]`."""
    return with_channel_bias(b, convolve(b, node, node.input(0), node.input(1)), node.optional(2))


def convolve(b: Builder, node: Node, x: SSAValue, w: SSAValue) -> SSAValue:
    """`braid.conv` of x and w with the attributes of the node."""
    window = window_attributes(node, shape_of(x)[2:], shape_of(w)[2:])
    return b.emit(
        ConvOp.get(
            x,
            w,
            strides=window.strides,
            pad_low=window.pad_low,
            pad_high=window.pad_high,
            dilations=window.dilations,
            groups=node.integer("group", 1),
        )
    )


@importer("ConvTranspose")
def transposed_convolution(b: Builder, node: Node) -> SSAValue:
    """`braid.conv_transpose`, then an add of the bias.

    `output_shape` determines the padding; what is odd goes to the end unless SAME_LOWER.
    """
    x, w = node.input(0), node.input(1)
    spatial, kernel = shape_of(x)[2:], shape_of(w)[2:]
    rank = len(spatial)
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    extra = node.integers("output_padding", (0,) * rank)
    pads = node.integers("pads", (0,) * (2 * rank))
    full = [
        stride * (extent - 1) + dilation * (size - 1) + 1 + more
        for extent, size, stride, dilation, more in zip(
            spatial, kernel, strides, dilations, extra, strict=True
        )
    ]
    auto_pad = node.text("auto_pad", "NOTSET")
    if node.has("output_shape") or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        same = [extent * stride for extent, stride in zip(spatial, strides, strict=True)]
        wanted = node.integers("output_shape", same)[-rank:]
        totals = [have - want for have, want in zip(full, wanted, strict=True)]
        extra = [more + max(0, -total) for more, total in zip(extra, totals, strict=True)]
        totals = [max(0, total) for total in totals]
        halves, rests = [t // 2 for t in totals], [t - t // 2 for t in totals]
        pads = (*halves, *rests) if auto_pad != "SAME_LOWER" else (*rests, *halves)
    y = b.emit(
        ConvTransposeOp.get(
            x,
            w,
            strides=strides,
            pad_low=pads[:rank],
            pad_high=pads[rank:],
            dilations=dilations,
            output_padding=extra,
            groups=node.integer("group", 1),
            finite_weight=_is_finite(b, w),
        )
    )
    return with_channel_bias(b, y, node.optional(2))


def _is_finite(b: Builder, value: SSAValue) -> bool:
    """Whether `value` is known to have neither infinities nor NaN."""
    array = _array(b, value)
    return array is not None and bool(np.isfinite(wide(array)).all())


def _array(b: Builder, value: SSAValue) -> Array | None:
    """What `value` is if it depends on weights and constants alone."""
    op = value.owner
    if (known := b.known(value)) is not None:
        return known
    if isinstance(op, ParameterOp):
        return b.parameters[op.key.data]
    if not isinstance(op, TensorOp) or not isinstance(value, OpResult):
        return None
    operands = [_array(b, operand) for operand in op.operands]
    if any(operand is None for operand in operands):
        return None
    return op.evaluate(*cast(list[Array], operands))[value.index]


def with_channel_bias(b: Builder, y: SSAValue, bias: SSAValue | None) -> SSAValue:
    """`y` `[N, C, spatial…]` plus `bias` `[C]`, if there is one."""
    return y if bias is None else apply(b, "add", y, per_channel(b, bias, y))


def per_channel(b: Builder, vector: SSAValue, like: SSAValue) -> SSAValue:
    """A vector `[C]` as `[1, C, 1…]` of the rank of `like`."""
    rank = len(shape_of(like))
    return reshape(b, vector, [1, shape_of(vector)[0], *[1] * (rank - 2)])
