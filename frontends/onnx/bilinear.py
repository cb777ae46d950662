"""Reading an image between its elements: two neighbours per dim, with weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.indexing import GatherNdOp
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, broadcast, cast, concat, reshape, scalar


@dataclass(frozen=True)
class Neighbours:
    """The two elements beside each position along one dim: i64 indices and float weights."""

    indices: tuple[SSAValue, SSAValue]
    weights: tuple[SSAValue, SSAValue]

    def reshaped(self, b: Builder, shape: Sequence[int]) -> "Neighbours":
        """The same elements in another shape."""
        first, second = (reshape(b, index, shape) for index in self.indices)
        left, right = (reshape(b, weight, shape) for weight in self.weights)
        return Neighbours((first, second), (left, right))


def neighbours(b: Builder, position: SSAValue, extent: int, *, slack: float) -> Neighbours:
    """The neighbours of positions in a dim of `extent` elements.

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
    """The neighbours of positions in a dim of `extent` elements with zeros all around it."""
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
    """A place as an index of the dim, and the weight, which is 0 where the place is outside."""
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
    """The four weighted neighbours of each point of a grid, each `[grid…, C]`.

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
        column_of_weights = reshape(b, weight, [*shape_of(weight), 1])
        terms.append(apply(b, "mul", value, cast(b, column_of_weights, element_type_of(value))))
    return terms
