"""Reading images between their elements: `GridSample`, `RoiAlign`, two neighbours per dim."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.indexing import GatherNdOp
from braid.dialects.braid.size_evaluation import fixed_shape
from braid.dialects.braid.size_limits import require_table
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    mean,
    reduce,
    reshape,
    scalar,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer


@dataclass(frozen=True)
class Neighbours:
    """The two elements beside each position along one dim: i64 indices and float weights."""

    indices: tuple[SSAValue, SSAValue]
    weights: tuple[SSAValue, SSAValue]

    def reshaped(self, b: Builder, shape: Sequence[int]) -> "Neighbours":
        """Return the same elements in another shape."""
        first, second = (reshape(b, index, shape) for index in self.indices)
        left, right = (reshape(b, weight, shape) for weight in self.weights)
        return Neighbours((first, second), (left, right))


def neighbours(b: Builder, position: SSAValue, extent: int, *, slack: float) -> Neighbours:
    """Return the neighbours of positions in a dim of `extent` elements.

    Positions up to `slack` outside are read as the edge; those farther out weigh nothing.
    """
    last = scalar(b, extent - 1, position)
    far_low = apply(b, "lt", position, scalar(b, -slack, position))
    far_high = apply(b, "gt", position, scalar(b, extent - 1 + slack, position))
    outside = apply(b, "or", far_low, far_high)
    inside = apply(b, "minimum", apply(b, "maximum", position, scalar(b, 0, position)), last)
    low = apply(b, "floor", inside)
    high = apply(b, "minimum", apply(b, "add", low, scalar(b, 1, low)), last)
    one = scalar(b, 1, position)
    right = apply(b, "sub", inside, low)
    left = apply(b, "sub", one, right)
    zero = scalar(b, 0, position)
    kept_left, kept_right = (apply(b, "select", outside, zero, w) for w in (left, right))
    return Neighbours((cast(b, low, i64), cast(b, high, i64)), (kept_left, kept_right))


def neighbours_or_zero(b: Builder, position: SSAValue, extent: int) -> Neighbours:
    """Return the neighbours of positions in a dim of `extent` elements between zeros."""
    low = apply(b, "floor", position)
    high = apply(b, "add", low, scalar(b, 1, low))
    right = apply(b, "sub", position, low)
    left = apply(b, "sub", scalar(b, 1, position), right)
    first, kept_left = _inside_or_zero(b, low, left, extent)
    second, kept_right = _inside_or_zero(b, high, right, extent)
    return Neighbours((first, second), (kept_left, kept_right))


def _inside_or_zero(
    b: Builder, place: SSAValue, weight: SSAValue, extent: int
) -> tuple[SSAValue, SSAValue]:
    """Return a place as an index of the dim, and the weight, which is 0 for a place outside."""
    zero, last = scalar(b, 0, place), scalar(b, extent - 1, place)
    clipped = apply(b, "minimum", apply(b, "maximum", place, zero), last)
    is_inside = apply(b, "eq", clipped, place)
    return cast(b, clipped, i64), apply(b, "select", is_inside, weight, scalar(b, 0, weight))


def corners(
    b: Builder,
    image: SSAValue,
    batch: SSAValue,
    rows: Neighbours,
    columns: Neighbours,
    grid: Sequence[int],
) -> list[SSAValue]:
    """Return the four weighted neighbours of each point of a grid, each `[grid…, C]`.

    `image` is `[N, H, W, C]`; `batch` (integers), `rows` and `columns` repeat to `grid`.
    """
    terms: list[SSAValue] = []
    entries = broadcast(b, cast(b, batch, i64), grid)
    for row, column in product((0, 1), repeat=2):
        places = [entries]
        places += [broadcast(b, v, grid) for v in (rows.indices[row], columns.indices[column])]
        last = len(grid)
        indices = concat(b, [reshape(b, place, [*grid, 1]) for place in places], last)
        value = b.emit(GatherNdOp.get(image, indices))
        weight = apply(b, "mul", rows.weights[row], columns.weights[column])
        column_of_weights = reshape(b, weight, [*fixed_shape(weight), 1])
        terms.append(apply(b, "mul", value, cast(b, column_of_weights, element_type_of(value))))
    return terms


class _Edges(NamedTuple):
    """Return where the samples of a region lie along one dim: `start + step · (0.5 + i)`."""

    start: SSAValue
    step: SSAValue


@importer("RoiAlign")
def roi_align(b: Builder, node: Node) -> SSAValue:
    """Import `RoiAlign`: bins with the mean, or the largest neighbour, of a grid of samples.

    The inputs are x `[N, C, H, W]`, regions `[R, 4]` as x, y, x, y, and their batch entries `[R]`.
    The largest neighbour is that after weighting. He et al., "Mask R-CNN", 2017.
    """
    x, regions, batches = node.input(0), node.input(1), node.input(2)
    samples = node.integer("sampling_ratio", 0)
    if samples <= 0:
        node.unsupported(
            "sampling_ratio is 0: the number of samples would depend on the regions",
            hint="export the model with a fixed sampling_ratio",
        )
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    aligned = node.text("coordinate_transformation_mode", default) == "half_pixel"
    bins = (node.integer("output_height", 1), node.integer("output_width", 1))
    count, channels = fixed_shape(regions)[0], fixed_shape(x)[1]
    if fixed_shape(regions) != (count, 4) or fixed_shape(batches) != (count,):
        node.fail(
            f"the regions have shape {list(fixed_shape(regions))} and their batch entries "
            f"{list(fixed_shape(batches))}, expected [R, 4] and [R]"
        )
    lines: list[Neighbours] = []
    for dim in range(2):
        edges = _edges(b, node, regions, dim, bins[dim] * samples, aligned)
        positions = _positions(b, edges, bins[dim] * samples)
        lines.append(neighbours(b, positions, fixed_shape(x)[2 + dim], slack=1.0))
    grid = [count, bins[0] * samples, bins[1] * samples]
    rows = lines[0].reshaped(b, [count, grid[1], 1])
    columns = lines[1].reshaped(b, [count, 1, grid[2]])
    batch = reshape(b, batches, [count, 1, 1])
    terms = corners(b, transpose(b, x, [0, 2, 3, 1]), batch, rows, columns, grid)
    is_mean = node.text("mode", "avg") == "avg"
    total = terms[0]
    for term in terms[1:]:
        total = apply(b, "add" if is_mean else "maximum", total, term)
    split = reshape(b, total, [count, bins[0], samples, bins[1], samples, channels])
    pooled = mean(b, split, [2, 4]) if is_mean else reduce(b, "maximum", split, [2, 4])
    return transpose(b, reshape(b, pooled, [count, *bins, channels]), [0, 3, 1, 2])


def _edges(
    b: Builder, node: Node, regions: SSAValue, dim: int, samples: int, aligned: bool
) -> _Edges:
    """Return the edges of dim 0 (rows) or 1 (columns), `[R, 1]`.

    Regions that are not aligned are at least 1 wide.
    """
    scale = scalar(b, node.number("spatial_scale", 1.0), regions)
    shift = scalar(b, 0.5 if aligned else 0.0, regions)
    start, end = (
        apply(b, "sub", apply(b, "mul", slice_dim(b, regions, 1, i + 1 - dim, 1), scale), shift)
        for i in (0, 2)
    )
    extent = apply(b, "sub", end, start)
    if not aligned:
        extent = apply(b, "maximum", extent, scalar(b, 1, extent))
    return _Edges(start, apply(b, "mul", extent, scalar(b, 1 / samples, extent)))


def _positions(b: Builder, edges: _Edges, samples: int) -> SSAValue:
    """Return the positions of samples, `[R, samples]`."""
    dtype = to_numpy(element_type_of(edges.start))
    require_table(samples, "samples of a region")
    centers = b.constant((np.arange(samples)[None, :] + 0.5).astype(dtype))
    return apply(b, "add", edges.start, apply(b, "mul", edges.step, centers))


_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names before opset 20."""


@dataclass(frozen=True)
class _Tap:
    """One element per position along one dim: its index, and its weight (None is 1)."""

    index: SSAValue
    weight: SSAValue | None


@importer("GridSample")
def grid_sample(b: Builder, node: Node) -> SSAValue:
    """Import samples of `[N, C, D…]` at places `[N, P…, dims]`, last dim first: `[N, C, P…]`."""
    x, grid = node.input(0), node.input(1)
    shape, rank = fixed_shape(x), len(fixed_shape(x))
    places = fixed_shape(grid)
    if rank < 3 or (len(places), places[0], places[-1]) != (rank, shape[0], rank - 2):
        node.fail(f"the grid has shape {list(places)}, expected [{shape[0]}, …, {rank - 2}]")
    mode = node.text("mode", "linear")
    taps = [
        _taps(b, node, slice_dim(b, grid, rank - 1, rank - 3 - dim, 1), extent, mode)
        for dim, extent in enumerate(shape[2:])
    ]
    channels_last = transpose(b, x, [0, *range(2, rank), 1])
    total: SSAValue | None = None
    for combination in product(*taps):
        indices = concat(b, [tap.index for tap in combination], rank - 1)
        value = b.emit(GatherNdOp.get(channels_last, indices, 1))
        for tap in combination:
            if tap.weight is not None:
                value = apply(b, "mul", value, cast(b, tap.weight, element_type_of(value)))
        total = value if total is None else apply(b, "add", total, value)
    assert total is not None
    return transpose(b, total, [0, rank - 1, *range(1, rank - 1)])


def _taps(b: Builder, node: Node, place: SSAValue, extent: int, mode: str) -> list[_Tap]:
    """Return the taps along one dim for places in [-1, 1], `[N, P…, 1]`."""
    align = bool(node.integer("align_corners", 0))
    padding = node.text("padding_mode", "zeros")
    scale, offset = (extent - 1) / 2 if align else extent / 2, (extent - 1) / 2
    position = apply(b, "mul", place, scalar(b, scale, place))
    position = apply(b, "add", position, scalar(b, offset, place))
    cubic = _MODES.get(mode, mode) == "cubic"
    if padding == "reflection":
        position = _reflected(b, position, extent, align)
    elif padding == "border" and not cubic:
        position = _clipped(b, position, extent)
    if mode == "nearest":
        return [_tap(b, apply(b, "round", position), None, extent, padding, align)]
    base = apply(b, "floor", position)
    fraction = apply(b, "sub", position, base)
    weights = _cubic(b, fraction) if cubic else _linear(b, fraction)
    first = -1 if cubic else 0
    return [
        _tap(b, _plus(b, base, first + i), weight, extent, padding, align)
        for i, weight in enumerate(weights)
    ]


def _tap(
    b: Builder,
    index: SSAValue,
    weight: SSAValue | None,
    extent: int,
    padding: str,
    align: bool,
) -> _Tap:
    """Return the tap of an element that may be outside: 0 there, or one that is inside."""
    if padding == "zeros":
        low = apply(b, "ge", index, scalar(b, 0, index))
        inside = apply(b, "and", low, apply(b, "lt", index, scalar(b, extent, index)))
        kept = scalar(b, 1, index) if weight is None else weight
        weight = apply(b, "select", inside, kept, scalar(b, 0, kept))
    elif padding == "reflection":
        index = _reflected(b, index, extent, align)
    return _Tap(cast(b, _clipped(b, index, extent), i64), weight)


def _clipped(b: Builder, x: SSAValue, extent: int) -> SSAValue:
    low = apply(b, "maximum", x, scalar(b, 0, x))
    return apply(b, "minimum", low, scalar(b, extent - 1, x))


def _reflected(b: Builder, x: SSAValue, extent: int, align: bool) -> SSAValue:
    """Return x reflected at the centers of the edge elements (aligned), or at their borders."""
    edge, width = (0.0, extent - 1) if align else (-0.5, extent)
    if width == 0:
        return scalar(b, 0, x)
    distance = apply(b, "abs", apply(b, "sub", x, scalar(b, edge, x)))
    rest = apply(b, "rem", distance, scalar(b, 2 * width, x))
    back = apply(b, "sub", scalar(b, 2 * width, x), rest)
    return apply(b, "add", apply(b, "minimum", rest, back), scalar(b, edge, x))


def _plus(b: Builder, x: SSAValue, number: int) -> SSAValue:
    return x if number == 0 else apply(b, "add", x, scalar(b, number, x))


def _linear(b: Builder, fraction: SSAValue) -> Sequence[SSAValue]:
    return apply(b, "sub", scalar(b, 1, fraction), fraction), fraction


def _cubic(b: Builder, fraction: SSAValue, a: float = -0.75) -> Sequence[SSAValue]:
    """Return the weights of the four neighbours (Keys, 1981)."""

    def polynomial(x: SSAValue, *coefficients: float) -> SSAValue:
        value = scalar(b, coefficients[0], x)
        for coefficient in coefficients[1:]:
            value = apply(b, "add", apply(b, "mul", value, x), scalar(b, coefficient, x))
        return value

    near, far = (a + 2, -(a + 3), 0, 1), (a, -5 * a, 8 * a, -4 * a)
    rest = apply(b, "sub", scalar(b, 1, fraction), fraction)
    outer = (_plus(b, fraction, 1), _plus(b, rest, 1))
    return (
        polynomial(outer[0], *far),
        polynomial(fraction, *near),
        polynomial(rest, *near),
        polynomial(outer[1], *far),
    )
