"""Resampling of open dims to sizes that are no known multiples: positions are data of each run."""

from collections.abc import Callable

from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.resampling import Resampling
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    reshape,
    scalar,
    size_scalar,
)
from braid.frontends.onnx.building.node import Node
from braid.support.sizes.expression import Extent


def resampled(
    b: Builder,
    node: Node,
    x: SSAValue,
    dim: int,
    size: Extent,
    how: Resampling,
    scale: SSAValue | None = None,
) -> SSAValue:
    """Return `x` resampled to `size` elements along `dim`: its extent, the size, or both are open.

    Where it is given, `scale`, `[1]`, says how far apart positions are, else both extents do.
    Positions and weights are those of `resampling_taps`, computed by ops in f64. Raises
    UnsupportedError for cubic filters, antialiasing, cropping, and interpolation of integers.
    """
    known = _COORDINATES.get(how.coordinates)
    is_plain = not (how.exclude_outside or how.antialias) and how.mode in ("nearest", "linear")
    computes = how.mode != "nearest" and not is_float(element_type_of(x))
    if known is None or not is_plain or computes:
        node.unsupported(
            f"dim {dim} of open size '{extents_of(x)[dim]}' is resampled to '{size}' by more than "
            "the nearest element or linear interpolation of floats"
        )
    numbers = b.emit(IotaOp.of(0, tensor_type(f64, [size])))
    extent, count = (size_scalar(b, each, numbers) for each in (extents_of(x)[dim], size))
    if scale is not None:
        count = apply(b, "mul", extent, cast(b, scale, f64))  # of which outputs are whole ones
    position = known(b, numbers, extent, count)
    last = apply(b, "sub", extent, scalar(b, 1, extent))

    def inside(place: SSAValue) -> SSAValue:
        least = apply(b, "maximum", place, scalar(b, 0, place))
        return cast(b, apply(b, "minimum", least, last), i64)

    if how.mode == "nearest":
        place = _NEAREST[how.nearest_mode](b, position)
        return b.emit(GatherOp.get(x, inside(place), dim))
    base = apply(b, "floor", position)
    column = [size if other == dim else 1 for other in range(len(extents_of(x)))]
    weight = reshape(b, cast(b, apply(b, "sub", position, base), element_type_of(x)), column)
    following = apply(b, "add", base, scalar(b, 1, base))
    first, second = (b.emit(GatherOp.get(x, inside(at), dim)) for at in (base, following))
    rest = apply(b, "sub", scalar(b, 1, weight), weight)
    return apply(b, "add", apply(b, "mul", first, rest), apply(b, "mul", second, weight))


_Position = Callable[[Builder, SSAValue, SSAValue, SSAValue], SSAValue]
"""Functions of the indices of outputs and of the extents of input and output."""


def _half_pixel(b: Builder, x: SSAValue, extent: SSAValue, count: SSAValue) -> SSAValue:
    half = scalar(b, 0.5, x)
    middle = apply(b, "mul", apply(b, "add", x, half), apply(b, "div", extent, count))
    return apply(b, "sub", middle, half)


def _pytorch_half_pixel(b: Builder, x: SSAValue, extent: SSAValue, count: SSAValue) -> SSAValue:
    is_one = apply(b, "eq", apply(b, "floor", count), scalar(b, 1, count))
    return apply(b, "select", is_one, scalar(b, 0, x), _half_pixel(b, x, extent, count))


def _align_corners(b: Builder, x: SSAValue, extent: SSAValue, count: SSAValue) -> SSAValue:
    one = scalar(b, 1, x)
    steps = apply(b, "maximum", apply(b, "sub", count, one), one)  # no output has none
    return apply(b, "div", apply(b, "mul", x, apply(b, "sub", extent, one)), steps)


def _asymmetric(b: Builder, x: SSAValue, extent: SSAValue, count: SSAValue) -> SSAValue:
    return apply(b, "mul", x, apply(b, "div", extent, count))


_COORDINATES: dict[str, _Position] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
}


def _prefer_floor(b: Builder, x: SSAValue) -> SSAValue:
    return apply(b, "ceil", apply(b, "sub", x, scalar(b, 0.5, x)))


def _prefer_ceil(b: Builder, x: SSAValue) -> SSAValue:
    return apply(b, "floor", apply(b, "add", x, scalar(b, 0.5, x)))


_NEAREST: dict[str, Callable[[Builder, SSAValue], SSAValue]] = {
    "round_prefer_floor": _prefer_floor,
    "round_prefer_ceil": _prefer_ceil,
    "floor": lambda b, x: apply(b, "floor", x),
    "ceil": lambda b, x: apply(b, "ceil", x),
}
