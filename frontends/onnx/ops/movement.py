"""Ops that move elements: reshape, transpose, slice, pad, concatenate, split, repeat."""

from collections.abc import Sequence
from typing import Any
from typing import cast as typed

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import LARGEST_EXTENT, SIZES, as_array, fixed
from braid.dialects.braid.size_facts import may_equal, total
from braid.dialects.braid.size_limits import require_table
from braid.dialects.braid.sized_ops import slice_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import (
    Element,
    decided,
    element_value,
    elements_of,
    may_decide,
)
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    drop_dims,
    normalized,
    pad,
    reduce,
    reshape,
    scalar,
    size_scalar,
    slice_dim,
    transpose,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.support.sizes.assumptions import Answer
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import (
    ceildiv,
    is_equal,
    maximum,
    minimum,
    product_of,
    select,
)


@importer("Reshape", since=5)
def reshape_node(b: Builder, node: Node) -> SSAValue:
    """The shape must be known at import; 0 keeps an extent, -1 is what remains."""
    x = node.input(0)
    shape, wanted = extents_of(x), _wanted_shape(b, node)
    if not node.integer("allowzero", 0):
        for i, extent in enumerate(wanted):
            if extent == 0:
                if i >= len(shape):
                    node.fail(f"shape {wanted} keeps dim {i}, but the input has rank {len(shape)}")
                wanted[i] = shape[i]
    if any(isinstance(extent, int) and extent < -1 for extent in wanted):
        node.fail(f"shape {wanted} has a negative extent")
    if wanted.count(-1) > 1:
        node.fail(f"shape {wanted} has more than one -1")
    if -1 in wanted:
        rest = product_of(extent for extent in wanted if extent != -1)
        elements = product_of(shape)
        if rest == 0 or SIZES.divides(rest, elements) is Answer.NO:
            node.fail(f"{elements} elements cannot take shape {wanted}")
        wanted[wanted.index(-1)] = elements // rest
    return reshape(b, x, wanted)


def _wanted_shape(b: Builder, node: Node) -> list[Extent]:
    """Return the shape that a node asks for.

    Where data decide extents, 0 and -1 among them are replaced as in the shapes that are known.
    """
    if node.has("shape"):
        return list(node.integers("shape"))
    value = node.input(1)
    if b.sizes_of(value) is not None or not may_decide(b, value):
        return list(node.known_sizes(1) or ())
    elements = elements_of(b, value)
    if not any(isinstance(element, Element) for element in elements):
        return list(node.known_sizes(1) or ())
    shape = extents_of(node.input(0))
    wanted = cast(b, reshape(b, value, [len(elements)]), i64)
    if not node.integer("allowzero", 0):
        own = b.sizes(as_array([*shape, *[0] * len(elements)][: len(elements)], [len(elements)]))
        wanted = apply(b, "select", apply(b, "eq", wanted, scalar(b, 0, wanted)), own, wanted)
    is_rest = apply(b, "eq", wanted, scalar(b, -1, wanted))
    others = apply(b, "select", is_rest, scalar(b, 1, wanted), wanted)
    product = reduce(b, "mul", others, [0])
    rest = apply(b, "div", size_scalar(b, product_of(shape), product), product)
    within = apply(b, "select", is_rest, rest, wanted)
    sizes = decided(b, within, node.proto.input[1]).reshape(-1).tolist()
    # What is known stays so, where that is an extent.
    return [
        size if isinstance(element, Element) or element in (0, -1) else element
        for size, element in zip(sizes, elements, strict=True)
    ]


@importer("Flatten")
def flatten(b: Builder, node: Node) -> SSAValue:
    """A matrix: the dims before `axis`, and those from it on."""
    x = node.input(0)
    shape = extents_of(x)
    axis, rank = node.integer("axis", 1), len(shape)
    axis = rank if axis == rank else normalized(axis, rank)  # the matrix may have one column
    return reshape(b, x, [product_of(shape[:axis]), product_of(shape[axis:])])


@importer("Squeeze")
def squeeze(b: Builder, node: Node) -> SSAValue:
    """Without the dims of `axes`, or all dims of size 1."""
    x, axes = node.input(0), node.integers_of("axes", 1)
    shape = extents_of(x)
    if axes is None:
        ones = [dim for dim, extent in enumerate(shape) if may_equal(extent, 1)]
        axes = [dim for dim in ones if fixed(shape[dim], f"dim {dim}") == 1]
    dims = [normalized(axis, len(shape)) for axis in axes]
    for dim in dims:
        if not may_equal(shape[dim], 1):
            node.fail(f"dim {dim} of shape {list(shape)} is not 1")
    return drop_dims(b, x, dims)


@importer("Unsqueeze")
def unsqueeze(b: Builder, node: Node) -> SSAValue:
    """New dims of size 1, which stand at `axes` of the result."""
    x, axes = node.input(0), node.integers_of("axes", 1) or ()
    rank = len(extents_of(x)) + len(axes)
    dims = {normalized(axis, rank) for axis in axes}
    if len(dims) != len(axes) or not dims <= set(range(rank)):
        node.fail(f"axes are {list(axes)}, expected different ones from {-rank} to {rank - 1}")
    rest = iter(extents_of(x))
    return reshape(b, x, [1 if dim in dims else next(rest) for dim in range(rank)])


@importer("Transpose")
def transpose_node(b: Builder, node: Node) -> SSAValue:
    """Reverses the dims by default."""
    x = node.input(0)
    return transpose(b, x, node.integers("perm", range(len(extents_of(x)))[::-1]))


@importer("Expand")
def expand(b: Builder, node: Node) -> SSAValue:
    """Repeats by numpy's rules, in both directions."""
    x, wanted = node.input(0), node.known_sizes(1) or ()
    rank = max(len(extents_of(x)), len(wanted))
    shapes = [[1] * (rank - len(shape)) + list(shape) for shape in (extents_of(x), wanted)]
    return broadcast(b, x, [_expanded(node, *pair) for pair in zip(*shapes, strict=True)])


def _expanded(node: Node, own: Extent, wanted: Extent) -> Extent:
    """Return the extent to which `own` is expanded: such that other ones cannot be repeated."""
    if 1 not in (own, wanted) and not may_equal(own, wanted):
        node.fail(f"an extent of {own} cannot be expanded to {wanted}")
    return wanted if own == 1 else select(is_equal(wanted, 1), own, wanted)


@importer("Tile", since=6)
def tile(b: Builder, node: Node) -> SSAValue:
    """Every dim repeated as a whole, by a broadcast of a new dim before it."""
    x, repeats = node.input(0), node.known_sizes(1) or ()
    shape = extents_of(x)
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
    return concat(b, values, normalized(axis, len(extents_of(values[0]))))


@importer("Split")
def split_node(b: Builder, node: Node) -> list[SSAValue]:
    """Sizes are an attribute before opset 13, an input since; equal parts without them."""
    x = node.input(0)
    dim = normalized(node.integer("axis", 0), len(extents_of(x)))
    extent, parts = extents_of(x)[dim], len(node.proto.output)
    sizes = node.sizes_of("split", 1)
    if sizes is None:
        if node.opset >= 18 and not node.has("num_outputs"):
            node.fail("neither sizes nor num_outputs are given")
        if node.opset < 18 and SIZES.divides(parts, extent) is Answer.NO:
            node.fail(f"{extent} elements make no {parts} equal parts")
        if node.integer("num_outputs", parts) != parts:
            node.fail(f"num_outputs is {node.integer('num_outputs')}, but it has {parts} outputs")
        size = ceildiv(extent, parts)
        is_even = SIZES.divides(parts, extent) is Answer.YES
        rests = [extent - size * i for i in range(parts)]
        sizes = [size if is_even else clipped(rest, 0, size) for rest in rests]
    if len(sizes) != parts or not may_equal(total(sizes), extent):
        node.fail(f"sizes {list(sizes)} of {parts} outputs do not add up to {extent}")
    if SIZES.equal(total(sizes), extent) is not Answer.YES:
        x = with_extents(b, x, [*extents_of(x)[:dim], total(sizes), *extents_of(x)[dim + 1 :]])
    return [slice_dim(b, x, dim, total(sizes[:i]), size) for i, size in enumerate(sizes)]


@importer("Slice", since=10)
def slice_node(b: Builder, node: Node) -> SSAValue:
    """Starts, ends, axes and steps are inputs."""
    axes, steps = node.known_integers(3), node.known_integers(4)
    if steps is not None and 0 in steps:
        node.fail(f"steps are {list(steps)}, expected none to be 0")
    starts, ends = (_decided_places(b, node, index, axes, steps) for index in (1, 2))
    return slice_along(b, node.input(0), starts, ends, axes, steps)


def _decided_places(
    b: Builder,
    node: Node,
    index: int,
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Sequence[Extent]:
    """Return the starts or ends of a slice.

    Where data decide them, they are first brought into the range of their dim: negative ones are
    counted from its end. The end of a slice that goes back may be before the first element; such a
    place is as far before the beginning of the dim as it has elements, and one more.
    """
    value = node.input(index)
    if b.sizes_of(value) is not None or not may_decide(b, value):
        return node.known_sizes(index) or ()
    shape = extents_of(node.input(0))
    places: list[Extent] = []
    for number, place in enumerate(elements_of(b, value)):
        if not isinstance(place, Element):
            places.append(place)
            continue
        extent = shape[normalized(number if axes is None else axes[number], len(shape))]
        is_end_of_backward = index == 2 and steps is not None and steps[number] < 0
        within = _within(b, element_value(b, place), extent, before=is_end_of_backward)
        most = extent if isinstance(extent, int) else None
        (size,) = decided(b, within, node.proto.input[index], most=most).reshape(-1).tolist()
        # Zero stands for the place before the first element, others for those one less.
        places.append(
            select(is_equal(size, 0), -1 - extent, size - 1) if is_end_of_backward else size
        )
    return places


def _within(b: Builder, place: SSAValue, extent: Extent, *, before: bool) -> SSAValue:
    """Return a place `[1]` in a dim, from its end where it is negative, and inside of it.

    With `before` it is one more than the place, 0 for that before the first element.
    """
    place = cast(b, place, i64)
    zero, most = scalar(b, 0, place), size_scalar(b, extent, place)
    is_negative = apply(b, "lt", place, zero)
    place = apply(b, "select", is_negative, apply(b, "add", place, most), place)
    if before:
        last = apply(b, "sub", most, scalar(b, 1, most))  # so that one more does not overflow
        place = apply(b, "add", apply(b, "minimum", place, last), scalar(b, 1, place))
    return apply(b, "minimum", apply(b, "maximum", place, zero), most)


@importer("Slice")
def slice_by_attributes(b: Builder, node: Node) -> SSAValue:
    """Starts, ends and axes are attributes, before opset 10."""
    axes = node.integers("axes") if node.has("axes") else None
    return slice_along(b, node.input(0), node.integers("starts"), node.integers("ends"), axes, None)


def sliced(extent: Extent, start: Extent, end: Extent, step: int) -> tuple[Extent, Extent]:
    """Return the first index that ONNX's `Slice` takes from a dim, and how many it takes.

    A negative start or end counts from the end of the dim. What lies outside is moved to the
    nearest place where a slice in this direction may begin or end. So a start before the first
    element is the first one, also where the slice goes back, which in Python is empty.
    """
    forward = step > 0
    least_end, most = (0, extent) if forward else (-1, extent - 1)
    first = clipped(_from_begin(start, extent), 0, most)
    last = clipped(_from_begin(end, extent), least_end, most)
    distance = last - first if forward else first - last
    return first, SIZES.simplified(maximum(0, ceildiv(distance, abs(step))))


def _from_begin(place: Extent, extent: Extent) -> Extent:
    """Return a place in a dim that, where it is negative, is counted from the end.

    Exporters write very large numbers for the ends of a dim, whatever its extent is.
    """
    if isinstance(place, Size):
        # Without an element, all places are the same.
        if SIZES.at_most(0, place) is Answer.YES or SIZES.at_most(extent, place + 1) is Answer.YES:
            return place
        is_negative = minimum(1, maximum(0, -place))
        return place + extent * SIZES.simplified(is_negative)
    if isinstance(extent, Size) and abs(place) >= LARGEST_EXTENT:
        return extent if place > 0 else -1
    return place + extent if place < 0 else place


def clipped(extent: Extent, least: Extent, most: Extent) -> Extent:
    """Return the nearest extent from `least` to `most`, the latter where these contradict."""
    return SIZES.simplified(minimum(maximum(extent, least), most))


def slice_along(
    b: Builder,
    x: SSAValue,
    starts: Sequence[Extent],
    ends: Sequence[Extent],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> SSAValue:
    """The elements that `sliced` says along the dims `axes`, the first ones by default."""
    shape = extents_of(x)
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    sizes, strides = list(shape), [1] * len(shape)
    offsets: list[Extent] = [0] * len(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        dim = normalized(axis, len(shape))
        first, count = sliced(shape[dim], start, end, step)
        is_empty = count == 0
        offsets[dim], sizes[dim] = 0 if is_empty else first, count
        strides[dim] = 1 if is_empty else step
    if sizes == list(shape) and all(stride == 1 for stride in strides):
        return x
    return b.emit(slice_of(x, offsets, sizes, strides))


@importer("DepthToSpace")
def depth_to_space(b: Builder, node: Node) -> SSAValue:
    """Blocks of channels become blocks of pixels; channels vary slowest (`DCR`) or fastest."""
    x, size = node.input(0), node.integer("blocksize")
    n, c, h, w = extents_of(x)
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
    n, c, h, w = extents_of(x)
    split = reshape(b, x, [n, c, h // size, size, w // size, size])
    is_slowest = node.text("mode", "DCR") == "DCR"
    moved = transpose(b, split, [0, 3, 5, 1, 2, 4] if is_slowest else [0, 1, 3, 5, 2, 4])
    return reshape(b, moved, [n, c * size**2, h // size, w // size])


def _padded_ends(b: Builder, x: SSAValue, dim: int, widths: tuple[int, int], mode: str) -> SSAValue:
    """Return an open dim with elements repeated at both ends: at most as many as it has."""
    extent, (before, after) = extents_of(x)[dim], widths
    if mode == "edge":
        first = [slice_dim(b, x, dim, 0, 1)] * before
        last = [slice_dim(b, x, dim, extent - 1, 1)] * after
        return concat(b, [*first, x, *last], dim)
    if mode == "wrap":
        ends = slice_dim(b, x, dim, extent - before, before), slice_dim(b, x, dim, 0, after)
        return concat(b, [ends[0], x, ends[1]], dim)
    begin = _backward(b, x, dim, before, before)
    end = _backward(b, x, dim, extent - 2, after)
    return concat(b, [begin, x, end], dim)


def _backward(b: Builder, x: SSAValue, dim: int, first: Extent, count: int) -> SSAValue:
    """Return `count` elements from `first` on in reverse order."""
    sizes, strides = list(extents_of(x)), [1] * len(extents_of(x))
    offsets: list[Extent] = [0] * len(sizes)
    offsets[dim], sizes[dim], strides[dim] = first, count, -1
    return b.emit(slice_of(x, offsets, sizes, strides))


def _positive(width: Extent) -> Extent:
    return SIZES.simplified(maximum(0, width))


_MODES = ("reflect", "edge", "wrap")
"""The modes that repeat elements of the input; numpy has them under the same names."""


@importer("Pad", since=11)
def pad_node(b: Builder, node: Node) -> SSAValue:
    """Widths, number and axes are inputs."""
    widths, rank = _decided_widths(b, node), len(extents_of(node.input(0)))
    axes = [normalized(axis, rank) for axis in node.known_integers(3) or range(rank)]
    low: list[Extent] = [0] * rank
    high = list(low)
    for position, dim in enumerate(axes):
        low[dim], high[dim] = widths[position], widths[position + len(axes)]
    number = node.known(2)
    return _padded(b, node, low, high, 0.0 if number is None else number.item())


def _decided_widths(b: Builder, node: Node) -> Sequence[Extent]:
    """Return the widths of a padding; where data decide them they may be negative."""
    value = node.input(1)
    if b.sizes_of(value) is not None or not may_decide(b, value):
        return node.known_sizes(1) or ()
    zero = b.constant(np.zeros([1] * len(extents_of(value)), to_numpy(element_type_of(value))))
    added, cut = (
        decided(b, apply(b, "maximum", signed, zero), name).reshape(-1).tolist()
        for signed, name in (
            (value, node.proto.input[1]),
            (apply(b, "neg", value), f"{node.proto.input[1]}.cut"),
        )
    )
    return [plus - minus for plus, minus in zip(added, cut, strict=True)]


@importer("Pad", since=2)
def pad_by_attributes(b: Builder, node: Node) -> SSAValue:
    """Widths and number are attributes, before opset 11."""
    widths, rank = node.integers("pads"), len(extents_of(node.input(0)))
    return _padded(b, node, widths[:rank], widths[rank:], node.number("value", 0.0))


def _padded(
    b: Builder, node: Node, low: Sequence[Extent], high: Sequence[Extent], number: float
) -> SSAValue:
    """Negative widths cut elements off before anything is added."""
    x, mode = node.input(0), node.text("mode", "constant")
    shape = extents_of(x)
    offsets = [_positive(-width) for width in low]
    ends = [extent - _positive(-width) for extent, width in zip(shape, high, strict=True)]
    sizes = [end - offset for end, offset in zip(ends, offsets, strict=True)]
    if sizes != list(shape):
        x = b.emit(slice_of(x, offsets, sizes))
    low, high = [_positive(width) for width in low], [_positive(width) for width in high]
    if mode == "constant":
        return pad(b, x, low, high, number)
    if mode not in _MODES:
        node.fail(f"mode is '{mode}', expected constant, reflect, edge or wrap")
    for dim, (before, after) in enumerate(zip(low, high, strict=True)):
        if before != 0 or after != 0:
            extent = sizes[dim]
            widths: Any = (fixed(before, "the padding"), fixed(after, "the padding"))
            if isinstance(extent, Size):
                x = _padded_ends(b, x, dim, widths, mode)
                continue
            require_table(extent + sum(widths), "elements that padding repeats")
            positions: Array = np.pad(np.arange(extent), widths, mode=typed(Any, mode))
            x = b.emit(GatherOp.get(x, b.constant(positions), dim))
    return x
