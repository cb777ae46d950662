"""Convolutions, also with displaced positions, and blocks added up into an image."""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import OpResult, SSAValue

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of, fits
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.folding import FoldOp
from braid.dialects.braid.numpy_functions import wide
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed, fixed_shape
from braid.dialects.braid.size_limits import require_table
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    matmul,
    reshape,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.building.windows import (
    WindowAttributes,
    declared_windows,
    require_kernel_shape,
    window_attributes,
)
from braid.frontends.onnx.ops.sampling import corners, neighbours_or_zero


@importer("Conv")
def convolution(b: Builder, node: Node) -> SSAValue:
    """Import `Conv` as `braid.conv`, then an add of the bias as `[1, C, 1…]`."""
    return with_channel_bias(b, convolve(b, node, node.input(0), node.input(1)), node.optional(2))


def convolve(b: Builder, node: Node, x: SSAValue, w: SSAValue) -> SSAValue:
    """Return `braid.conv` of x and w with the attributes of the node."""
    window = window_attributes(node, extents_of(x)[2:], fixed_shape(w)[2:])
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
    """Import ConvTranspose as `braid.conv_transpose` and an addition of the bias.

    `output_shape` determines the padding. The odd element of padding goes to the beginning, as ONNX
    says, unless `auto_pad` is SAME_UPPER.
    """
    x, w = node.input(0), node.input(1)
    spatial, kernel = extents_of(x)[2:], fixed_shape(w)[2:]
    rank = len(spatial)
    require_kernel_shape(node, kernel, rank)
    strides, dilations, pads = declared_windows(node, rank)
    extra = node.integers("output_padding", (0,) * rank)
    full = [
        stride * (extent - 1) + dilation * (size - 1) + 1 + more
        for extent, size, stride, dilation, more in zip(
            spatial, kernel, strides, dilations, extra, strict=True
        )
    ]
    auto_pad = node.text("auto_pad", "NOTSET")
    if auto_pad == "VALID":
        pads = (0,) * (2 * rank)
    if node.has("output_shape") or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        same = [extent * stride for extent, stride in zip(spatial, strides, strict=True)]
        wanted = node.integers("output_shape")[-rank:] if node.has("output_shape") else same
        totals = [
            fixed(have - want, "the padding") for have, want in zip(full, wanted, strict=True)
        ]
        extra = [more + max(0, -total) for more, total in zip(extra, totals, strict=True)]
        totals = [max(0, total) for total in totals]
        smaller, larger = [t // 2 for t in totals], [t - t // 2 for t in totals]
        pads = (*smaller, *larger) if auto_pad == "SAME_UPPER" else (*larger, *smaller)
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
    """Return whether `value` is known to have neither infinities nor NaN."""
    array = _array(b, value)
    return array is not None and bool(np.isfinite(wide(array)).all())


def _array(b: Builder, value: SSAValue) -> Array | None:
    """Return the elements of `value` if it depends on weights and constants alone."""
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
    """Return `y` `[N, C, spatial…]` plus `bias` `[C]`, if there is one."""
    return y if bias is None else apply(b, "add", y, per_channel(b, bias, y))


def per_channel(b: Builder, vector: SSAValue, like: SSAValue) -> SSAValue:
    """Return a vector `[C]` as `[1, C, 1…]` of the rank of `like`; else raise ValueError."""
    rank = len(extents_of(like))
    if rank < 2 or not fits(extents_of(vector), extents_of(like)[1:2]):
        raise ValueError(
            f"{list(extents_of(vector))} is no vector for the channels of {list(extents_of(like))}"
        )
    return reshape(b, vector, [1, extents_of(vector)[0], *[1] * (rank - 2)])


@importer("DeformConv")
def deformable_convolution(b: Builder, node: Node) -> SSAValue:
    """Import `DeformConv` as a matrix product of samples, which become columns.

    The inputs are x `[N, C, H, W]`, w, offsets `[N, groups · window · 2, OH, OW]`, bias and mask.
    Dai et al., "Deformable Convolutional Networks", 2017; the mask is Zhu et al., 2019.
    """
    x, w, offsets = node.input(0), node.input(1), node.input(2)
    if len(extents_of(x)) != 4:
        node.unsupported(f"the input has rank {len(extents_of(x))}, expected 4")
    filters, groups = extents_of(w)[0], node.integer("group", 1)
    kernel = fixed_shape(w)[2:]
    window = window_attributes(node, extents_of(x)[2:], kernel)
    samples = _samples(b, node, x, offsets, kernel, window)
    batch, positions = extents_of(x)[0], extents_of(offsets)[2:]
    depth = math.prod(extents_of(w)[1:])
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
    """Return the reads of windows, masked: `[N, offset groups, C / groups, window, positions]`.

    Every offset group is read as an image of its own.
    """
    batch, channels, *spatial = fixed_shape(x)
    groups, positions, taps = (
        node.integer("offset_group", 1),
        fixed_shape(offsets)[2:],
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
    """Return where each tap of each window reads along `dim`, in the shape of `grid`."""
    dtype = to_numpy(element_type_of(offset))
    require_table(math.prod(kernel) * grid[2 + dim], "places of the taps")
    tap = np.indices(kernel)[dim].reshape(1, -1, 1, 1) * window.dilations[dim]
    start = np.arange(grid[2 + dim]) * window.strides[dim] - window.pad_low[dim]
    column = [1, 1, 1, 1]
    column[2 + dim] = -1
    places = (tap + start.reshape(column)).astype(dtype)
    return apply(b, "add", reshape(b, offset, grid), b.constant(places))


@importer("Col2Im")
def col2im(b: Builder, node: Node) -> SSAValue:
    """Add the columns `[N, C · block, positions]` up at the places that they came from."""
    x, image, block = node.input(0), node.known_integers(1), node.known_integers(2)
    if image is None or block is None:
        node.fail("the shapes of image and block are missing")
    rank = len(image)
    strides, dilations, pads = declared_windows(node, rank)
    padded = [e + pads[d] + pads[rank + d] for d, e in enumerate(image)]
    counts = [
        (extent - dilation * (size - 1) - 1) // stride + 1
        for extent, size, stride, dilation in zip(padded, block, strides, dilations, strict=True)
    ]
    if min(counts) < 0:
        node.fail(f"blocks of {list(block)} with these dilations exceed the padded image {padded}")
    columns = reshape(b, x, [*extents_of(x)[:2], *counts])
    lists = {"strides": strides, "dilations": dilations, "pad_low": pads[:rank]}
    return b.emit(FoldOp.get(columns, block, image, **lists))
