"""A group's meaning in f64, and the allowed error of a kernel that computes in f32.

Bounds are carried from op to op. Sums of products are bounded as those of random numbers are
(Higham and Mary, "Sharper probabilistic backward error analysis for basic linear algebra kernels
with random data", 2020), by the root of the depth; see docs/numerics.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.resize import ResizeOp

DEVIATIONS = 8
"""How far from their mean roundings may add up to be."""

ROUNDING = {"float64": 2.0**-52, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half a unit of the last place of 1; for f64 including the reference's own error."""

FUNCTION_ULPS = {4: 5, 8: 16}
"""Units of the last place that exp, tanh and the others may be off, see docs/concepts/gpus.md."""

OTHERS = {2: 2e-2, 4: 1e-5, 8: 1e-12}
"""Of ops without a rule, relative to the largest result; their stages are rounded to 16 bits."""


@dataclass(frozen=True)
class Bounded:
    """Numbers in f64, or exact integers, and for each how far from it what is computed may be."""

    value: Array
    error: Array

    @staticmethod
    def of(array: Array, type: object) -> "Bounded":
        """Return the bounds of stored values."""
        assert isinstance(type, TensorType)
        wide = array.astype(np.float64) if is_float(type.element_type) else array
        return Bounded(wide, np.zeros(array.shape))

    @property
    def magnitude(self) -> Array:
        """Infinite errors are left out, since they stay infinite."""
        return np.where(np.isfinite(self.value), np.abs(self.value), 0.0)


def evaluate_bounded(group: FusedOp, inputs: Sequence[Array]) -> list[Bounded]:
    """Return the results of a group for stored operands, with bounds."""
    known: dict[SSAValue, Bounded] = {
        own: Bounded.of(array, own.type)
        for own, array in zip(group.body.block.args, inputs, strict=True)
    }
    for op in group.body.block.ops:
        if isinstance(op, TensorOp):
            operands = [known[operand] for operand in op.operands]
            known.update(zip(op.results, _evaluate(op, operands), strict=True))
    return [known[value] for value in group.terminator.arguments]


def compare_bounded(actual: Array, expected: Bounded, what: str) -> None:
    """Whether what was computed is within its bound."""
    assert actual.shape == expected.value.shape
    if expected.value.dtype.kind != "f":
        assert actual.dtype == expected.value.dtype
        np.testing.assert_array_equal(actual, expected.value, what)
        return
    with np.errstate(over="ignore"):
        stored = expected.value.astype(actual.dtype).astype(np.float64)
    finite, wide = np.isfinite(stored), actual.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(wide), finite, what)
    np.testing.assert_array_equal(wide[~finite], stored[~finite], what)
    share = share_of_bound(np.where(finite, wide - expected.value, 0), expected, actual)
    assert share <= 1, f"{what}: {share:.3g} of the bound"


def share_of_bound(difference: Array, expected: Bounded, actual: Array) -> float:
    """Return the largest error as a fraction of its bound."""
    return float((np.abs(difference) / (expected.error + _least(actual))).max(initial=0))


def _least(array: Array) -> float:
    """Return the step of subnormal numbers."""
    bits = {"float16": -24, "bfloat16": -133, "float32": -149, "float64": -1074}
    return float(2.0 ** bits[array.dtype.name])


# ---- Rules ----


def _evaluate(op: TensorOp, operands: Sequence[Bounded]) -> list[Bounded]:
    (result,) = op.results
    assert isinstance(result.type, TensorType)
    if not is_float(result.type.element_type):
        (value,) = op.evaluate(*(own.value for own in operands))
        return [Bounded(value, np.zeros(value.shape))]
    dtype = to_numpy(result.type.element_type)
    half = ROUNDING["float64" if dtype.itemsize == 8 else "float32"]
    if isinstance(op, MatmulOp | ConvOp):
        found = _products(op, operands, half)
    elif isinstance(op, SoftmaxOp):
        found = _softmax(op, operands[0], half)
    elif isinstance(op, ElementwiseOp):
        found = _elementwise(op, operands, half)
    elif isinstance(op, LayerNormOp | ResizeOp):
        found = _without_rule(op, operands, OTHERS[dtype.itemsize])
    else:
        found = _monotone(op, operands, half)
    error = found.error
    if dtype.itemsize == 2:  # what is between ops is rounded to it, or is not
        error = error + ROUNDING[dtype.name] * (found.magnitude + error)
    return [Bounded(found.value, np.where(np.isfinite(found.value), error, 0))]


def _products(op: MatmulOp | ConvOp, operands: Sequence[Bounded], half: float) -> Bounded:
    a, b = operands
    depth = math.prod(b.value.shape[1:]) if isinstance(op, ConvOp) else a.value.shape[-1]
    (value,) = op.evaluate(a.value, b.value)
    (squares,) = op.evaluate(np.square(a.value), np.square(b.value))
    error = DEVIATIONS * half * np.sqrt((depth + 1) * squares)
    if a.error.any() or b.error.any():
        error = error + op.evaluate(a.magnitude + a.error, b.error)[0]
        error = error + op.evaluate(a.error, b.magnitude)[0]
    return Bounded(value, error)


def _monotone(op: TensorOp, operands: Sequence[Bounded], half: float) -> Bounded:
    """Evaluate ops that move elements, or compute maxima or sums."""
    value, high, low = (
        op.evaluate(*(own.value + sign * own.error for own in operands))[0] for sign in (0, 1, -1)
    )
    with np.errstate(invalid="ignore"):
        error = np.maximum(high - value, value - low)
    if isinstance(op, PoolOp | ReduceOp) and op.kind.data == "add":
        (squares,) = op.evaluate(np.square(operands[0].value))
        is_pool = isinstance(op, PoolOp)
        depth = math.prod(op.windows.size) if is_pool else operands[0].value.size / value.size
        error = error + DEVIATIONS * half * np.sqrt((depth + 1) * squares)
    return Bounded(value, error)


def _without_rule(op: TensorOp, operands: Sequence[Bounded], share: float) -> Bounded:
    assert not any(own.error.any() for own in operands), f"no rule for {op.name} of results"
    (value,) = op.evaluate(*(own.value for own in operands))
    scale = np.abs(value[np.isfinite(value)]).max(initial=0)
    return Bounded(value, np.full(value.shape, share * scale))


def _softmax(op: SoftmaxOp, own: Bounded, half: float) -> Bounded:
    """Errors of exponents are relative ones of powers, and the sum's is below the largest.

    In 16 bits, its stages may be rounded: differences, powers, and sums in a tree.
    """
    dim = op.dim.value.data
    (value,) = op.evaluate(own.value)
    top = own.value.max(axis=dim, keepdims=True)
    distance = np.where(value > 0, np.abs(own.value - top), 0)
    exponents = own.error + 4 * half * (distance + np.abs(top))
    powers = 2 * half * FUNCTION_ULPS[4 if half > 2.0**-50 else 8]
    extent = own.value.shape[dim]
    sums = DEVIATIONS * half * np.sqrt(extent + 1)
    if (name := to_numpy(op.result_type().element_type).name) in ("float16", "bfloat16"):
        exponents = exponents + ROUNDING[name] * distance
        powers, sums = powers + ROUNDING[name], sums + ROUNDING[name] * math.log2(extent + 1)
    relative = exponents + exponents.max(axis=dim, keepdims=True) + 2 * powers + sums
    return Bounded(value, value * np.expm1(relative))


Rule = Callable[..., Array]


def _sum(a: Bounded, b: Bounded) -> Array:
    return a.error + b.error


ELEMENTWISE: Mapping[str, Rule] = {
    "add": _sum,
    "sub": _sum,
    "maximum": _sum,
    "mul": lambda a, b: a.magnitude * b.error + b.magnitude * a.error + a.error * b.error,
    "cast": lambda a: a.error,
    "abs": lambda a: a.error,
    "neg": lambda a: a.error,
    "select": lambda condition, a, b: np.where(condition.value, a.error, b.error),
    "tanh": lambda a: a.error,
}
"""Errors of operands grow by the largest slope, and the op's own rounding is added."""


def _elementwise(op: ElementwiseOp, operands: Sequence[Bounded], half: float) -> Bounded:
    name = op.ROW.name
    assert name in ELEMENTWISE, f"no rule for {op.name}"
    with np.errstate(all="ignore"):
        value = np.asarray(op.ROW.function(*(own.value for own in operands)), np.float64)
    units = 2 * FUNCTION_ULPS[4 if half > 2.0**-50 else 8] if name == "tanh" else 1
    error = ELEMENTWISE[name](*operands)
    magnitude = Bounded(value, error).magnitude
    return Bounded(value, np.broadcast_to(error, value.shape) + units * half * magnitude)
