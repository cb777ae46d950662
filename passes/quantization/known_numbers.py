"""Bounds on scales, biases and accumulators that decide whether integer arithmetic is exact."""

import math

import numpy as np
from xdsl.ir import SSAValue

from braid.analysis.interpreter.parameter_values import ParameterValues
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.quantization import DequantizeOp, QuantizeOp, is_quantized, limits_of
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.relayout import Array

_SCALES = 2.0**-100, 2.0**40
"""The range of usual scales: a product of two of them and a 31-bit sum does not overflow f32."""

_LEAST_NORMAL = 2.0**-126
"""The smallest normal number of f32."""

_ROUNDING = 2.0**-22
"""The relative error of a bias in f32 that is a product of three factors: three roundings of
f32, with a margin of half a rounding."""

_SHARE = 0.25
"""The share of a quantization step by which a bias may be off; with all other roundings the
result is off by less than one step."""

_UNKNOWN = 1 << 31
"""The bound of an i32 of which nothing is known."""

_SMALL = 1 << 16
"""The largest number of elements of an array that `KnownNumbers` caches."""


class KnownNumbers(ParameterExpressions):
    """The values of a module that are known at compile time, which are evaluated on demand."""

    def __init__(self, values: ParameterValues) -> None:
        super().__init__()
        self._values = values
        self._arrays: dict[SSAValue, Array | None] = {}

    def array(self, value: SSAValue) -> Array | None:
        """Return the array of a value; None if it depends on an input or an unknown parameter."""
        if value in self._arrays:
            return self._arrays[value]
        found = self._values.of(value) if self.is_known(value) else None
        if found is None or found.size <= _SMALL:
            self._arrays[value] = found
        return found

    def is_scale(self, value: SSAValue) -> bool:
        """Return whether integers may be computed with this scale: positive, in `_SCALES`.

        A scale that is computed at run time is assumed to be valid.
        """
        return not self.is_known(value) or self.is_positive(value)

    def is_positive(self, value: SSAValue) -> bool:
        """Return whether this is known to be positive and in `_SCALES`, so that it keeps order."""
        scale = self.array(value)
        return scale is not None and bool(((scale >= _SCALES[0]) & (scale <= _SCALES[1])).all())

    def is_factor(self, value: SSAValue) -> bool:
        """Return whether a scale may be multiplied by this: as `is_positive`, of either sign."""
        factor = self.array(value)
        if factor is None:
            return False
        size = np.abs(factor)
        return bool(((size >= _SCALES[0]) & (size <= _SCALES[1])).all())

    def have_product(self, left: SSAValue, right: SSAValue) -> bool:
        """Return whether the product of two scales is a normal number, or one is not known.

        A subnormal product has fewer digits, and integer accumulators are multiplied by it.
        """
        scales = self.array(left), self.array(right)
        least = [float(np.abs(scale).min(initial=1)) for scale in scales if scale is not None]
        return len(least) < len(scales) or math.prod(least) >= _LEAST_NORMAL


def bias_fits(known: KnownNumbers, bias: SSAValue, sums: SSAValue, step: SSAValue) -> bool:
    """Return whether rounding `bias` to multiples of `step` changes results insignificantly.

    `step` is the scale of the integer accumulator `sums`. The remainder may be an error of f32, or
    a small share of the finest step that `sums` is quantized to.
    """
    values, steps = known.array(bias), known.array(step)
    if values is None or steps is None or not known.is_factor(step):
        return False
    exact, unit = values.astype(np.float64), steps.astype(np.float64)
    with np.errstate(all="ignore"):
        whole = np.rint(exact / unit)
        left = np.abs(exact - whole * unit)
    if not (np.abs(whole) < _UNKNOWN).all() or not values.size:
        return False
    seen = _SHARE * finest_step(known, sums)
    return bool(((left <= _ROUNDING * np.abs(exact)) | (left <= seen)).all())


def finest_step(known: KnownNumbers, value: SSAValue) -> float:
    """Return the finest step that `value` is quantized to; 0 if a use does not quantize it.

    Between `value` and `braid.quantize` there may be moves, minima, maxima and multiplications by
    known factors. The step is in the unit of `value`.
    """
    passing = (ReshapeOp, TransposeOp, SliceOp, ELEMENTWISE["maximum"], ELEMENTWISE["minimum"])
    steps: list[float] = []
    for use in value.uses:
        op = use.operation
        if isinstance(op, QuantizeOp) and use.index == 0:
            scale = known.array(op.operands[1])
            steps.append(0.0 if scale is None else float(np.abs(scale).min(initial=math.inf)))
        elif isinstance(op, passing):
            steps.append(finest_step(known, op.results[0]))
        elif isinstance(op, ELEMENTWISE["mul"]):
            factor = known.array(op.operands[1 - use.index])
            size = 0.0 if factor is None else float(np.abs(factor).max(initial=0))
            steps.append(finest_step(known, op.results[0]) / size if size > 0 else 0.0)
        else:
            return 0.0
    return min(steps, default=0.0)


def is_finite(known: KnownNumbers, value: SSAValue) -> bool:
    """Return whether `value` is computed from quantized and finite values by ops without NaN."""
    if known.is_known(value):
        array = known.array(value)
        return array is not None and bool(np.isfinite(array.astype(np.float64)).all())
    op = value.owner
    if isinstance(op, DequantizeOp):
        return known.is_known(op.operands[1])
    keeping = tuple(ELEMENTWISE[n] for n in ("add", "sub", "mul", "maximum", "minimum"))
    moving = (ReshapeOp, TransposeOp, SliceOp, ConcatOp, BroadcastOp, ConvOp, MatmulOp, ReduceOp)
    if not isinstance(op, (*keeping, *moving)):
        return False
    return all(is_finite(known, operand) for operand in op.operands)


def largest_of(known: KnownNumbers, value: SSAValue) -> int:
    """Return a bound of the absolute values of a quantized or i32 tensor; 2^31 if not known."""
    array = known.array(value) if known.is_known(value) else None
    if array is not None:
        return int(np.abs(array.astype(np.int64)).max(initial=0))
    if is_quantized(kind := element_type_of(value)):
        return max(map(abs, limits_of(kind)))
    op = value.owner
    bounds = (largest_of(known, each) for each in getattr(op, "operands", ()))
    match op:
        case ConvOp() | MatmulOp():
            left, right = bounds
            weight = shape_of(op.operands[1])
            terms = weight[1:] if isinstance(op, ConvOp) else weight[-2:-1]
            bound = left * right * math.prod(terms)
        case PoolOp() if op.kind.data == "add":
            bound = next(bounds) * math.prod(op.windows.size)
        case ReduceOp() if op.kind.data == "add":
            extents = [shape_of(op.input)[dim] for dim in op.dims.get_values()]
            bound = _UNKNOWN if DYNAMIC in extents else next(bounds) * math.prod(extents)
        case _ if isinstance(op, ELEMENTWISE["add"] | ELEMENTWISE["sub"]):
            bound = sum(bounds)
        case _ if isinstance(op, ELEMENTWISE["mul"]):
            bound = math.prod(bounds)
        case PadOp():
            bound = max(next(bounds), abs(int(op.value.value.data)))
        case _ if isinstance(op, ReshapeOp | TransposeOp | SliceOp | ELEMENTWISE["cast"]):
            bound = next(bounds)
        case _:
            bound = _UNKNOWN
    return min(abs(bound), _UNKNOWN)
