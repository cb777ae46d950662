"""`braid.resize` along open dims: positions and weights are computed where elements are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Attribute

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.resampling import Resampling, filter_steps
from braid.dialects.braid.resize import ResizeOp
from braid.lowering.common.element_types import convert
from braid.lowering.cpu.fallback.open_groups.tensors import ComputedTensor, Point, Tensor, number
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.float_arithmetic import FloatArithmetic
from braid.lowering.emit.positions import position_of
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import Extent


def resized(op: ResizeOp, source: Tensor) -> Tensor:
    """Return the result of a resize, which is computed in f64 unless elements are only moved.

    Raises UnsupportedError for a part of a resize, and for integers that are rounded between dims.
    """
    how, type = op.resampling, element_type_of(op.input)
    if op.part is not None or (how.antialias and how.mode != "nearest" and not is_float(type)):
        what = "parts of resizes" if op.part is not None else "integers with 'antialias'"
        raise UnsupportedError(
            f"no code for '{op.name}' with open dims: {what}",
            location=source_location(op),
            hint="give the shape",
        )
    scales, region, rank = op.scales.get_values(), op.region.get_values(), len(source.extents)
    inner = source if how.mode == "nearest" else _converted(source, f64)
    before, after = extents_of(op.input), extents_of(op.output)
    for dim, scale in enumerate(scales):
        bounds = (region[dim], region[rank + dim]) if region else (0.0, 1.0)
        if before[dim] != after[dim] or scale != 1 or bounds != (0.0, 1.0):
            inner = _Dim(inner, dim, after[dim], scale, bounds, how).tensor()
    return inner if how.mode == "nearest" else _converted(inner, type)


def _converted(source: Tensor, type: Attribute) -> ComputedTensor:
    def element(e: Emitter, point: Point) -> Value:
        return convert(e.builder, source.at(e, point), source.element_type, type)

    return ComputedTensor(source.extents, type, element)


@dataclass(frozen=True)
class _Floats(FloatArithmetic):
    """Arithmetic in f64."""

    e: Emitter

    def of(self, value: float | Index) -> Value:
        """Return a number or an index."""
        if isinstance(value, float):
            return self.e.constant(value, f64)
        return self.e.make(arith.SIToFPOp, [number(self.e, value)], f64)

    def floor(self, a: Value) -> Value:
        """Return a rounded down."""
        return self.e.make(math.FloorOp, [a], f64)

    def ceil(self, a: Value) -> Value:
        """Return a rounded up."""
        return self.e.make(math.CeilOp, [a], f64)

    def compare(self, a: Value, kind: str, b: Value) -> Value:
        """Return whether a is below b, or as `kind` says."""
        return self.e.insert(arith.CmpfOp(a, b, kind))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Return a where the condition holds, else b."""
        return self.e.insert(arith.SelectOp(condition, a, b))


@dataclass(frozen=True)
class _Dim:
    """One dim that is resampled; see `resampling`, whose formulas these are."""

    source: Tensor
    dim: int
    output: Extent
    scale: float
    region: tuple[float, float]
    how: Resampling

    @property
    def input(self) -> Extent:
        """Return the extent of the source."""
        return self.source.extents[self.dim]

    def tensor(self) -> Tensor:
        """Return the result."""
        extents = list(self.source.extents)
        extents[self.dim] = self.output
        return ComputedTensor(tuple(extents), self.source.element_type, self._element)

    def _element(self, e: Emitter, point: Point) -> Value:
        position = e.once(
            (self, "position", point[self.dim]), lambda: self._position(e, point[self.dim])
        )
        if self.how.mode == "nearest":
            value = self._read(e, point, self._nearest(_Floats(e), position))
        else:
            value = self._filtered(e, point, position)
        if self.how.coordinates != "tf_crop_and_resize":
            return value
        f, type = _Floats(e), self.source.element_type
        low = f.compare(position, "olt", f.of(0.0))
        high = f.compare(position, "ogt", f.of(e.sub(self.input, 1)))
        outside = e.insert(arith.OrIOp(low, high))
        offset = convert(e.builder, f.of(self.how.extrapolation), f64, type)
        return e.insert(arith.SelectOp(outside, offset, value))

    def _read(self, e: Emitter, point: Point, place: Value) -> Value:
        """Return the element at a position, or at the edge where it is outside."""
        f = _Floats(e)
        last = f.of(e.sub(self.input, 1))
        place = e.apply(arith.MinimumfOp, e.apply(arith.MaximumfOp, place, f.of(0.0)), last)
        whole = e.make(arith.FPToSIOp, [place], i64)
        index = position_of(e, whole, self.input, without_sign=True)
        return self.source.at(e, [*point[: self.dim], index, *point[self.dim + 1 :]])

    def _nearest(self, f: _Floats, x: Value) -> Value:
        half = f.of(0.5)
        match self.how.nearest_mode:
            case "round_prefer_floor":
                return f.ceil(f.sub(x, half))
            case "round_prefer_ceil":
                return f.floor(f.add(x, half))
            case "floor":
                return f.floor(x)
            case _:
                return f.ceil(x)

    def _filtered(self, e: Emitter, point: Point, position: Value) -> Value:
        f = _Floats(e)
        base = f.floor(position)
        steps = [f.of(float(step)) for step in filter_steps(self.scale, self.how)]
        places = [f.add(base, step) for step in steps]
        weights = self._weights(f, f.sub(position, base), steps, places)
        terms = [
            f.mul(self._read(e, point, place), weight)
            for place, weight in zip(places, weights, strict=True)
        ]
        return _sum(f, terms)

    def _weights(
        self, f: _Floats, rest: Value, steps: Sequence[Value], places: Sequence[Value]
    ) -> list[Value]:
        """Return the weights of the elements at `places`, `steps` from the one before `rest`."""
        shrink = min(self.scale, 1.0) if self.how.antialias else 1.0
        filter = self._linear if self.how.mode == "linear" else self._cubic
        weights: list[Value] = []
        for step in steps:
            distance = f.e.make(math.AbsFOp, [f.sub(step, rest)], f64)
            weights.append(filter(f, f.mul(distance, f.of(shrink))))
        if self.how.exclude_outside:
            weights = [
                f.select(self._is_inside(f, place), weight, f.of(0.0))
                for place, weight in zip(places, weights, strict=True)
            ]
        total = _sum(f, weights)
        return [f.div(weight, total) for weight in weights]

    def _is_inside(self, f: _Floats, place: Value) -> Value:
        last = f.of(f.e.sub(self.input, 1))
        above, under = f.compare(place, "oge", f.of(0.0)), f.compare(place, "ole", last)
        return f.e.insert(arith.AndIOp(above, under))

    def _linear(self, f: _Floats, distance: Value) -> Value:
        return f.e.apply(arith.MaximumfOp, f.sub(f.of(1.0), distance), f.of(0.0))

    def _cubic(self, f: _Floats, x: Value) -> Value:
        a, square = self.how.cubic_a, f.mul(x, x)
        near = f.sub(f.mul(f.of(a + 2), x), f.of(a + 3))
        near = f.add(f.mul(near, square), f.of(1.0))
        far = f.add(f.mul(f.sub(x, f.of(5.0)), x), f.of(8.0))
        far = f.mul(f.of(a), f.sub(f.mul(far, x), f.of(4.0)))
        inner = f.select(f.compare(x, "olt", f.of(2.0)), far, f.of(0.0))
        return f.select(f.compare(x, "ole", f.of(1.0)), near, inner)

    def _position(self, e: Emitter, index: Index) -> Value:
        """Return where an output lies in the input."""
        f = _Floats(e)
        return _COORDINATES[self.how.coordinates](self, f, f.of(index))

    def half_pixel(self, f: _Floats, x: Value) -> Value:
        """Return the position between the middles of elements."""
        return f.sub(self.half_pixel_for_nearest(f, x), f.of(0.5))

    def half_pixel_for_nearest(self, f: _Floats, x: Value) -> Value:
        """Return the position of a middle between the edges of elements."""
        return f.div(f.add(x, f.of(0.5)), f.of(self.scale))

    def half_pixel_symmetric(self, f: _Floats, x: Value) -> Value:
        """Return the position with as much left over on both sides."""
        extent = f.of(self.input)
        adjustment = f.div(f.of(self.output), f.mul(f.of(self.scale), extent))
        middle = f.mul(f.div(extent, f.of(2.0)), f.sub(f.of(1.0), adjustment))
        return f.add(middle, self.half_pixel(f, x))

    def pytorch_half_pixel(self, f: _Floats, x: Value) -> Value:
        """Return `half_pixel`, or 0 for the only output."""
        return self._if_several(f, self.half_pixel(f, x), f.of(0.0))

    def align_corners(self, f: _Floats, x: Value) -> Value:
        """Return the position between the middles of the first and the last element."""
        extent, one = f.of(self.input), f.of(1.0)
        span = f.sub(f.mul(f.of(self.scale), extent), one)
        return self._if_several(f, f.div(f.mul(x, f.sub(extent, one)), span), f.of(0.0))

    def asymmetric(self, f: _Floats, x: Value) -> Value:
        """Return the position between the first edges of elements."""
        return f.div(x, f.of(self.scale))

    def crop(self, f: _Floats, x: Value) -> Value:
        """Return the position within the region."""
        start, end = self.region
        one, last = f.of(1.0), f.sub(f.of(self.input), f.of(1.0))
        share = f.div(f.mul(x, f.of(end - start)), f.sub(f.of(self.output), one))
        middle = f.of(0.5 * (start + end))
        return f.mul(self._if_several(f, f.add(f.of(start), share), middle), last)

    def _if_several(self, f: _Floats, value: Value, otherwise: Value) -> Value:
        several = f.compare(f.of(self.output), "ogt", f.of(1.0))
        return f.select(several, value, otherwise)


def _sum(f: _Floats, terms: Sequence[Value]) -> Value:
    total = terms[0]
    for term in terms[1:]:
        total = f.add(total, term)
    return total


_COORDINATES: dict[str, Callable[[_Dim, _Floats, Value], Value]] = {
    "half_pixel": _Dim.half_pixel,
    "half_pixel_symmetric": _Dim.half_pixel_symmetric,
    "pytorch_half_pixel": _Dim.pytorch_half_pixel,
    "align_corners": _Dim.align_corners,
    "asymmetric": _Dim.asymmetric,
    "tf_half_pixel_for_nn": _Dim.half_pixel_for_nearest,
    "tf_crop_and_resize": _Dim.crop,
}
"""Functions from an output position to the position in the input."""
