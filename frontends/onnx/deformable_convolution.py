"""`DeformConv`: a convolution whose windows read at displaced positions."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import to_numpy
from braid.frontends.onnx.bilinear import corners, neighbours_or_zero
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.convolution import with_channel_bias
from braid.frontends.onnx.expressions import apply, matmul, reshape, slice_dim, transpose
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer
from braid.frontends.onnx.windows import WindowAttributes, window_attributes


@importer("DeformConv")
def deformable_convolution(b: Builder, node: Node) -> SSAValue:
    """Inputs: x `[N, C, H, W]`, w, offsets `[N, groups · window · 2, OH, OW]`, bias, mask.

    The samples become columns, of which a matrix product makes the result. Dai et al.,
    "Deformable Convolutional Networks", 2017; the mask is Zhu et al., 2019.
    """
    x, w, offsets = node.input(0), node.input(1), node.input(2)
    if len(shape_of(x)) != 4:
        node.unsupported(f"the input has rank {len(shape_of(x))}, expected 4")
    filters, groups = shape_of(w)[0], node.integer("group", 1)
    kernel = shape_of(w)[2:]
    window = window_attributes(node, shape_of(x)[2:], kernel)
    samples = _samples(b, node, x, offsets, kernel, window)
    batch, positions = shape_of(x)[0], shape_of(offsets)[2:]
    depth = math.prod(shape_of(w)[1:])
    columns = reshape(b, samples, [batch, groups, depth, math.prod(positions)])
    product = matmul(b, reshape(b, w, [1, groups, filters // groups, depth]), columns)
    result = reshape(b, product, [batch, filters, *positions])
    return with_channel_bias(b, result, node.optional(3))


def _samples(
    b: Builder,
    node: Node,
    x: SSAValue,
    offsets: SSAValue,
    kernel: Sequence[int],
    window: WindowAttributes,
) -> SSAValue:
    """What the windows read, times the mask, `[N, offset groups, C / groups, window, positions]`.

    Every offset group is read as an image of its own.
    """
    batch, channels, *spatial = shape_of(x)
    groups, positions, taps = (
        node.integer("offset_group", 1),
        shape_of(offsets)[2:],
        kernel[0] * kernel[1],
    )
    images, depth = batch * groups, channels // groups
    grid = [images, taps, *positions]
    split = reshape(b, offsets, [images, taps, 2, *positions])
    lines = [
        neighbours_or_zero(
            b, _places(b, slice_dim(b, split, 2, dim, 1), grid, dim, kernel, window), spatial[dim]
        )
        for dim in range(2)
    ]
    image = transpose(b, reshape(b, x, [images, depth, *spatial]), [0, 2, 3, 1])
    entries = b.constant(np.arange(images).reshape(images, 1, 1, 1))
    terms = corners(b, image, entries, lines[0], lines[1], grid)
    value = terms[0]
    for term in terms[1:]:
        value = apply(b, "add", value, term)
    if (mask := node.optional(4)) is not None:
        value = apply(b, "mul", value, reshape(b, mask, [*grid, 1]))
    flat = reshape(b, value, [images, taps * math.prod(positions), depth])
    return transpose(b, flat, [0, 2, 1])


def _places(
    b: Builder,
    offset: SSAValue,
    grid: Sequence[int],
    dim: int,
    kernel: Sequence[int],
    window: WindowAttributes,
) -> SSAValue:
    """Where each tap of each window reads along `dim`, in the shape of `grid`."""
    dtype = to_numpy(element_type_of(offset))
    tap = np.indices(kernel)[dim].reshape(1, -1, 1, 1) * window.dilations[dim]
    start = np.arange(grid[2 + dim]) * window.strides[dim] - window.pad_low[dim]
    column = [1, 1, 1, 1]
    column[2 + dim] = -1
    places = (tap + start.reshape(column)).astype(dtype)
    return apply(b, "add", reshape(b, offset, grid), b.constant(places))
