"""Ops that move elements: reshape, transpose, slice, pad, concatenate, split, repeat."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_limits import require_table
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    broadcast,
    concat,
    drop_dims,
    normalized,
    pad,
    reshape,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer


@importer("Reshape", since=5)
def reshape_node(b: Builder, node: Node) -> SSAValue:
    """The shape must be known at import; 0 keeps an extent, -1 is what remains."""
    x, wanted = node.input(0), list(node.integers_of("shape", 1) or ())
    shape = shape_of(x)
    if not node.integer("allowzero", 0):
        for i, extent in enumerate(wanted):
            if extent == 0:
                if i >= len(shape):
                    node.fail(f"shape {wanted} keeps dim {i}, but the input has rank {len(shape)}")
                wanted[i] = shape[i]
    if any(extent < -1 for extent in wanted):
        node.fail(f"shape {wanted} has a negative extent")
    if wanted.count(-1) > 1:
        node.fail(f"shape {wanted} has more than one -1")
    if -1 in wanted:
        rest = math.prod(extent for extent in wanted if extent != -1)
        if rest == 0 or math.prod(shape) % rest:
            node.fail(f"{math.prod(shape)} elements cannot take shape {wanted}")
        wanted[wanted.index(-1)] = math.prod(shape) // rest
    return reshape(b, x, wanted)


@importer("Flatten")
def flatten(b: Builder, node: Node) -> SSAValue:
    """A matrix: the dims before `axis`, and those from it on."""
    x = node.input(0)
    shape = shape_of(x)
    axis, rank = node.integer("axis", 1), len(shape)
    axis = rank if axis == rank else normalized(axis, rank)  # the matrix may have one column
    return reshape(b, x, [math.prod(shape[:axis]), math.prod(shape[axis:])])


@importer("Squeeze")
def squeeze(b: Builder, node: Node) -> SSAValue:
    """Without the dims of `axes`, or all dims of size 1."""
    x, axes = node.input(0), node.integers_of("axes", 1)
    shape = shape_of(x)
    if axes is None:
        axes = [dim for dim, extent in enumerate(shape) if extent == 1]
    dims = [normalized(axis, len(shape)) for axis in axes]
    for dim in dims:
        if not 0 <= dim < len(shape) or shape[dim] != 1:
            node.fail(f"dim {dim} of shape {list(shape)} is not 1")
    return drop_dims(b, x, dims)


@importer("Unsqueeze")
def unsqueeze(b: Builder, node: Node) -> SSAValue:
    """New dims of size 1, which stand at `axes` of the result."""
    x, axes = node.input(0), node.integers_of("axes", 1) or ()
    rank = len(shape_of(x)) + len(axes)
    dims = {normalized(axis, rank) for axis in axes}
    if len(dims) != len(axes) or not dims <= set(range(rank)):
        node.fail(f"axes are {list(axes)}, expected different ones from {-rank} to {rank - 1}")
    rest = iter(shape_of(x))
    return reshape(b, x, [1 if dim in dims else next(rest) for dim in range(rank)])


@importer("Transpose")
def transpose_node(b: Builder, node: Node) -> SSAValue:
    """Reverses the dims by default."""
    x = node.input(0)
    return transpose(b, x, node.integers("perm", range(len(shape_of(x)))[::-1]))


@importer("Expand")
def expand(b: Builder, node: Node) -> SSAValue:
    """Repeats by numpy's rules, in both directions."""
    x, wanted = node.input(0), node.known_integers(1) or ()
    return broadcast(b, x, np.broadcast_shapes(shape_of(x), wanted))


@importer("Tile", since=6)
def tile(b: Builder, node: Node) -> SSAValue:
    """Every dim repeated as a whole, by a broadcast of a new dim before it."""
    x, repeats = node.input(0), node.known_integers(1) or ()
    shape = shape_of(x)
    pairs = list(zip(repeats, shape, strict=True))
    split = [extent for _, extent in pairs for extent in (1, extent)]
    wide = [extent for pair in pairs for extent in pair]
    repeated = broadcast(b, reshape(b, x, split), wide)
    return reshape(b, repeated, [count * extent for count, extent in pairs])


@importer("Concat")
def concatenate(b: Builder, node: Node) -> SSAValue:
    """Along one dim."""
    values = [node.input(i) for i in range(len(node.inputs))]
    axis = node.integer("axis", 1 if node.opset < 4 else None)
    return concat(b, values, normalized(axis, len(shape_of(values[0]))))


@importer("Split")
def split_node(b: Builder, node: Node) -> list[SSAValue]:
    """Sizes are an attribute before opset 13, an input since; equal parts without them."""
    x = node.input(0)
    dim = normalized(node.integer("axis", 0), len(shape_of(x)))
    extent, parts = shape_of(x)[dim], len(node.proto.output)
    sizes = node.integers_of("split", 1)
    if sizes is None:
        if node.opset >= 18 and not node.has("num_outputs"):
            node.fail("neither sizes nor num_outputs are given")
        if node.opset < 18 and extent % parts:
            node.fail(f"{extent} elements make no {parts} equal parts")
        if node.integer("num_outputs", parts) != parts:
            node.fail(f"num_outputs is {node.integer('num_outputs')}, but it has {parts} outputs")
        size = -(-extent // node.integer("num_outputs", parts))
        sizes = [max(0, min(size, extent - size * i)) for i in range(parts)]
    if len(sizes) != parts or sum(sizes) != extent:
        node.fail(f"sizes {list(sizes)} of {parts} outputs do not add up to {extent}")
    offsets = np.cumsum([0, *sizes])
    return [
        slice_dim(b, x, dim, int(offset), size)
        for offset, size in zip(offsets, sizes, strict=False)
    ]


@importer("Slice", since=10)
def slice_node(b: Builder, node: Node) -> SSAValue:
    """Starts, ends, axes and steps are inputs."""
    starts, ends = node.known_integers(1) or (), node.known_integers(2) or ()
    steps = node.known_integers(4)
    if steps is not None and 0 in steps:
        node.fail(f"steps are {list(steps)}, expected none to be 0")
    return slice_along(b, node.input(0), starts, ends, node.known_integers(3), steps)


@importer("Slice")
def slice_by_attributes(b: Builder, node: Node) -> SSAValue:
    """Starts, ends and axes are attributes, before opset 10."""
    axes = node.integers("axes") if node.has("axes") else None
    return slice_along(b, node.input(0), node.integers("starts"), node.integers("ends"), axes, None)


def sliced(extent: int, start: int, end: int, step: int) -> range:
    """The indices that ONNX's `Slice` takes from a dim.

    A negative start or end counts from the end of the dim. What lies outside is moved to the
    nearest place where a slice in this direction may begin or end. So a start before the first
    element is the first one, also where the slice goes back, which in Python is empty.
    """
    forward = step > 0
    least_end, most = (0, extent) if forward else (-1, extent - 1)
    start, end = (place + extent if place < 0 else place for place in (start, end))
    return range(min(max(start, 0), most), min(max(end, least_end), most), step)


def slice_along(
    b: Builder,
    x: SSAValue,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> SSAValue:
    """The elements that `sliced` says along the dims `axes`, the first ones by default."""
    shape = shape_of(x)
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    offsets, sizes, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        dim = normalized(axis, len(shape))
        selected = sliced(shape[dim], start, end, step)
        offsets[dim] = selected.start if len(selected) else 0
        sizes[dim], strides[dim] = len(selected), step if len(selected) else 1
    if sizes == list(shape) and all(stride == 1 for stride in strides):
        return x
    return b.emit(SliceOp.get(x, offsets, sizes, strides))


@importer("DepthToSpace")
def depth_to_space(b: Builder, node: Node) -> SSAValue:
    """Blocks of channels become blocks of pixels; channels vary slowest (`DCR`) or fastest."""
    x, size = node.input(0), node.integer("blocksize")
    n, c, h, w = shape_of(x)
    inner = c // size**2
    if node.text("mode", "DCR") == "DCR":
        split, order = [n, size, size, inner, h, w], [0, 3, 4, 1, 5, 2]
    else:
        split, order = [n, inner, size, size, h, w], [0, 1, 4, 2, 5, 3]
    moved = transpose(b, reshape(b, x, split), order)
    return reshape(b, moved, [n, inner, h * size, w * size])


@importer("SpaceToDepth")
def space_to_depth(b: Builder, node: Node) -> SSAValue:
    """Blocks of pixels become blocks of channels, the inverse of `depth_to_space`."""
    x, size = node.input(0), node.integer("blocksize")
    n, c, h, w = shape_of(x)
    split = reshape(b, x, [n, c, h // size, size, w // size, size])
    is_slowest = node.text("mode", "DCR") == "DCR"
    moved = transpose(b, split, [0, 3, 5, 1, 2, 4] if is_slowest else [0, 1, 3, 5, 2, 4])
    return reshape(b, moved, [n, c * size**2, h // size, w // size])


_MODES = ("reflect", "edge", "wrap")
"""The modes that repeat elements of the input; numpy has them under the same names."""


@importer("Pad", since=11)
def pad_node(b: Builder, node: Node) -> SSAValue:
    """Widths, number and axes are inputs."""
    widths, rank = node.known_integers(1) or (), len(shape_of(node.input(0)))
    axes = [normalized(axis, rank) for axis in node.known_integers(3) or range(rank)]
    low, high = [0] * rank, [0] * rank
    for position, dim in enumerate(axes):
        low[dim], high[dim] = widths[position], widths[position + len(axes)]
    number = node.known(2)
    return _padded(b, node, low, high, 0.0 if number is None else number.item())


@importer("Pad", since=2)
def pad_by_attributes(b: Builder, node: Node) -> SSAValue:
    """Widths and number are attributes, before opset 11."""
    widths, rank = node.integers("pads"), len(shape_of(node.input(0)))
    return _padded(b, node, widths[:rank], widths[rank:], node.number("value", 0.0))


def _padded(
    b: Builder, node: Node, low: Sequence[int], high: Sequence[int], number: float
) -> SSAValue:
    """Negative widths cut elements off before anything is added."""
    x, mode = node.input(0), node.text("mode", "constant")
    shape = shape_of(x)
    offsets = [max(0, -width) for width in low]
    ends = [extent - max(0, -width) for extent, width in zip(shape, high, strict=True)]
    sizes = [end - offset for end, offset in zip(ends, offsets, strict=True)]
    if sizes != list(shape):
        x = b.emit(SliceOp.get(x, offsets, sizes))
    low, high = [max(0, width) for width in low], [max(0, width) for width in high]
    if mode == "constant":
        return pad(b, x, low, high, number)
    if mode not in _MODES:
        node.fail(f"mode is '{mode}', expected constant, reflect, edge or wrap")
    for dim, (before, after) in enumerate(zip(low, high, strict=True)):
        if before or after:
            require_table(before + sizes[dim] + after, "elements that padding repeats")
            widths: Any = (before, after)
            positions: Array = np.pad(np.arange(sizes[dim]), widths, mode=cast(Any, mode))
            x = b.emit(GatherOp.get(x, b.constant(positions), dim))
    return x
