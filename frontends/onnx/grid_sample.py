"""`GridSample`: gathers at computed positions, weighted by a separable filter."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.indexing import GatherNdOp
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, cast, concat, scalar, slice_dim, transpose
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names before opset 20."""


@dataclass(frozen=True)
class _Tap:
    """One element per position along one dim: its index, and its weight (None is 1)."""

    index: SSAValue
    weight: SSAValue | None


@importer("GridSample")
def grid_sample(b: Builder, node: Node) -> SSAValue:
    """Input `[N, C, D…]`, grid `[N, P…, dims]` with the last dim first; result `[N, C, P…]`."""
    x, grid = node.input(0), node.input(1)
    shape, rank = shape_of(x), len(shape_of(x))
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
    """The taps along one dim for places in [-1, 1], `[N, P…, 1]`."""
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
    """An element that may be outside: 0 there, or one that is inside."""
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
    """Mirrored at the centers of the edge elements (aligned), or at their outer borders."""
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
    """Weights of the four neighbours. Keys, 1981."""

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
