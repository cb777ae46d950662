"""`Slice`: by numbers, by sizes, and by places that data decide."""

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.size_evaluation import LARGEST_EXTENT, SIZES
from braid.dialects.braid.sized_ops import slice_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import (
    Element,
    decided,
    element_value,
    elements_of,
    may_decide,
)
from braid.frontends.onnx.building.expressions import apply, cast, normalized, scalar, size_scalar
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.support.sizes.assumptions import Answer
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import ceildiv, is_equal, maximum, minimum, select


@importer("Slice", since=10)
def slice_node(b: Builder, node: Node) -> SSAValue:
    """Import `Slice` with starts, ends, axes and steps as inputs."""
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

    If data decide them, they are first normalized to the range of their dim: negative ones count
    from its end. The end of a slice that goes back may be before the first element; such a place is
    as far before the beginning of the dim as it has elements, and one more.
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
        # Zero represents the position before the first element, and n + 1 the position n.
        places.append(
            select(is_equal(size, 0), -1 - extent, size - 1) if is_end_of_backward else size
        )
    return places


def _within(b: Builder, place: SSAValue, extent: Extent, *, before: bool) -> SSAValue:
    """Return a position `[1]` in a dim, counted from its end if it is negative, and clamped.

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
    """Import `Slice` with starts, ends and axes as attributes, before opset 10."""
    axes = node.integers("axes") if node.has("axes") else None
    return slice_along(b, node.input(0), node.integers("starts"), node.integers("ends"), axes, None)


def sliced(extent: Extent, start: Extent, end: Extent, step: int) -> tuple[Extent, Extent]:
    """Return the first index that ONNX's `Slice` takes from a dim, and how many it takes.

    A negative start or end counts from the end of the dim. Positions out of bounds are clamped to
    the nearest one at which a slice in this direction may begin or end. So a start before the first
    element is the first one, even in a slice with a negative step, which would be empty in Python.
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
    """Return the elements that `sliced` selects along `axes`, by default the first dims."""
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
