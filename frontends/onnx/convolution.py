"""Convolution."""

from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, reshape
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer
from braid.frontends.onnx.windows import window_attributes


@importer("Conv")
def convolution(b: Builder, node: Node) -> SSAValue:
    """`braid.conv`, then an add of the bias as `[1, C, 1…]`."""
    x, w = node.input(0), node.input(1)
    window = window_attributes(node, shape_of(x)[2:], shape_of(w)[2:])
    y = b.emit(
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
    return with_channel_bias(b, y, node.optional(2))


def with_channel_bias(b: Builder, y: SSAValue, bias: SSAValue | None) -> SSAValue:
    """`y` `[N, C, spatial…]` plus `bias` `[C]`, if there is one."""
    return y if bias is None else apply(b, "add", y, per_channel(b, bias, y))


def per_channel(b: Builder, vector: SSAValue, like: SSAValue) -> SSAValue:
    """A vector `[C]` as `[1, C, 1…]` of the rank of `like`."""
    rank = len(shape_of(like))
    return reshape(b, vector, [1, shape_of(vector)[0], *[1] * (rank - 2)])
