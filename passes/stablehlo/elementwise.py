"""Elementwise ops of StableHLO."""

import math
from functools import partial

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, require_dim, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import (
    bytes_of,
    f32,
    i1,
    is_float,
    is_stored_only,
    is_unsigned,
    numpy_from_dense,
)
from braid.dialects.braid.movement import BroadcastOp, ReshapeOp
from braid.dialects.braid.narrow_numbers import decoded, encoded
from braid.passes.stablehlo.bits import in_total_order, is_negative
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.regions import Elements, region_of, returned_by
from braid.support.sizes.expression import Extent

_SAME = {
    "abs": "abs",
    "acos": "acos",
    "acosh": "acosh",
    "add": "add",
    "and": "and",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "ceil": "ceil",
    "cosh": "cosh",
    "cosine": "cos",
    "erf": "erf",
    "exponential": "exp",
    "floor": "floor",
    "is_inf": "isinf",
    "log": "log",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "mul",
    "negate": "neg",
    "not": "not",
    "or": "or",
    "power": "pow",
    "round_nearest_even": "round",
    "rsqrt": "rsqrt",
    "shift_left": "shift_left",
    "sign": "sign",
    "sine": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "subtract": "sub",
    "tan": "tan",
    "tanh": "tanh",
    "xor": "xor",
}
"""Ops that StableHLO and braid only name differently."""

ON_BOOLS = {"add": "or", "maximum": "or", "mul": "and", "minimum": "and"}
"""The logic ops that arithmetic on bools is in braid."""


def _same(name: str, t: StablehloNode) -> SSAValue:
    if t.is_bool(t.value(0)):
        name = ON_BOOLS.get(name, name)
    return t.apply(name, *t.op.operands)


for _name, _same_name in _SAME.items():
    converter(_name)(partial(_same, _same_name))


@converter("divide")
def divide(t: StablehloNode) -> SSAValue:
    """Convert a division; by an integer 0 all bits are ones, -1 or the largest unsigned number."""
    dividend, divisor = t.value(0), t.value(1)
    quotient = t.apply("div", dividend, divisor)
    element_type = element_type_of(divisor)
    if is_float(element_type) or not _may_be_zero(divisor):
        return quotient
    bits = 8 * bytes_of(element_type)
    ones = t.scalar((1 << bits) - 1 if is_unsigned(element_type) else -1, divisor)
    return t.apply("select", t.apply("eq", divisor, t.scalar(0, divisor)), ones, quotient)


@converter("remainder")
def remainder(t: StablehloNode) -> SSAValue:
    """Convert a remainder; by an integer 0 it is the dividend."""
    dividend, divisor = t.value(0), t.value(1)
    rest = t.apply("rem", dividend, divisor)
    if is_float(element_type_of(divisor)) or not _may_be_zero(divisor):
        return rest
    return t.apply("select", t.apply("eq", divisor, t.scalar(0, divisor)), dividend, rest)


def _may_be_zero(value: SSAValue) -> bool:
    """Return whether `value` is not constant, or a constant with a zero."""
    owner = value.owner
    while isinstance(owner, BroadcastOp | ReshapeOp):
        owner = owner.input.owner
    return not isinstance(owner, ConstantOp) or not numpy_from_dense(owner.value).all()


@converter("square")
def square(t: StablehloNode) -> SSAValue:
    """Return `x · x`."""
    return t.apply("mul", t.value(0), t.value(0))


@converter("compare")
def compare(t: StablehloNode) -> SSAValue:
    """Compare floats by IEEE 754 or in their total order, integers by their type."""
    values = [t.value(0), t.value(1)]
    if t.text("compare_type") == "TOTALORDER":
        values = [in_total_order(t, value) for value in values]
    direction = t.text("comparison_direction").lower()
    if direction not in {"eq", "ne", "ge", "gt", "le", "lt"}:
        t.fail(f"the direction is '{direction}', expected EQ, NE, GE, GT, LE or LT")
    return t.apply(direction, *values)


@converter("select")
def select(t: StablehloNode) -> SSAValue:
    """Return a select, whose condition may be one bool for all elements."""
    chosen = t.value(1)
    return t.apply("select", t.repeat(t.value(0), extents_of(chosen)), chosen, t.value(2))


@converter("clamp")
def clamp(t: StablehloNode) -> SSAValue:
    """Return operand 1 limited to operands 0 and 2, which may be numbers."""
    x = t.value(1)
    low, high = (t.repeat(t.value(index), extents_of(x)) for index in (0, 2))
    return t.clamp(x, low, high)


@converter("logistic")
def logistic(t: StablehloNode) -> SSAValue:
    """Return `1 / (1 + exp(-x))`."""
    return t.sigmoid(t.value(0))


@converter("log_plus_one")
def log_plus_one(t: StablehloNode) -> SSAValue:
    """Return `log(1 + x)` without the loss of digits of `1 + x`, after W. Kahan."""
    x = t.value(0)
    one = t.scalar(1, x)
    u = t.apply("add", x, one)
    difference, logarithm = t.apply("sub", u, one), t.apply("log", u)
    scaled = t.apply("mul", x, t.apply("div", logarithm, difference))
    is_small = t.apply("eq", difference, t.scalar(0, x))
    large = t.apply("select", t.apply("isinf", u), logarithm, scaled)
    return t.apply("select", is_small, x, large)


@converter("exponential_minus_one")
def exponential_minus_one(t: StablehloNode) -> SSAValue:
    """Return `exp(x) - 1` without the loss of digits of the difference, after W. Kahan."""
    x = t.value(0)
    u = t.apply("exp", x)
    difference = t.apply("sub", u, t.scalar(1, x))
    scaled = t.apply("mul", difference, t.apply("div", x, t.apply("log", u)))
    is_small = t.apply("eq", difference, t.scalar(0, x))
    is_large = t.apply("gt", t.apply("abs", x), t.scalar(1, x))
    return t.apply("select", is_small, x, t.apply("select", is_large, difference, scaled))


@converter("cbrt")
def cube_root(t: StablehloNode) -> SSAValue:
    """Return the real root, which has the sign of its operand; of 16-bit floats with a third in
    f32.
    """
    element_type = element_type_of(t.value(0))
    x = t.cast(t.value(0), f32) if bytes_of(element_type) < bytes_of(f32) else t.value(0)
    root = t.apply("pow", t.apply("abs", x), t.scalar(1 / 3, x))
    return t.cast(t.apply("mul", t.apply("sign", x), root), element_type)


@converter("atan2")
def angle(t: StablehloNode) -> SSAValue:
    """Return the angle of `(x, y)` for operands y and x, from -π to π; both zeros have a sign."""
    element_type = t.element_type
    y, x = (t.cast(v, f32) if bytes_of(element_type) < 4 else v for v in t.op.operands)
    rise, run = t.apply("abs", y), t.apply("abs", x)
    # The quotients 0 / 0 and ∞ / ∞ are NaN: their angles are those of 0 / 1 and 1 / 1.
    ones = t.scalar(1, x)
    are_equal = t.apply("eq", rise, run)
    is_zero = t.apply("eq", rise, t.scalar(0, x))
    slope = t.apply("div", rise, run)
    of_equal = t.apply("select", is_zero, t.scalar(0, x), ones)
    acute = t.apply("atan", t.apply("select", are_equal, of_equal, slope))
    obtuse = t.apply("sub", t.scalar(math.pi, x), acute)
    turned = t.apply("select", is_negative(t, x), obtuse, acute)
    signed = t.apply("select", is_negative(t, y), t.apply("neg", turned), turned)
    return t.cast(signed, element_type)


@converter("real")
def real_part(t: StablehloNode) -> SSAValue:
    """Return a real number."""
    return t.value(0)


@converter("imag")
def imaginary_part(t: StablehloNode) -> SSAValue:
    """Return 0, the imaginary part of a real number."""
    return t.broadcast(t.scalar(0, t.value(0)), t.extents(t.value(0)))


@converter("round_nearest_afz")
def round_away_from_zero(t: StablehloNode) -> SSAValue:
    """Round to nearest, halves away from zero; numbers below 2^23 with a half are exact."""
    x = t.value(0)
    size = t.apply("abs", x)
    whole = t.apply("floor", size)
    fraction = t.apply("sub", size, whole)
    up = t.apply("ge", fraction, t.scalar(0.5, x))
    rounded = t.apply("select", up, t.apply("add", whole, t.scalar(1, x)), whole)
    return t.apply("mul", t.apply("sign", x), rounded)


@converter("is_finite")
def is_finite(t: StablehloNode) -> SSAValue:
    """Convert a test for neither infinity nor NaN."""
    x = t.value(0)
    return t.apply("not", t.apply("or", t.apply("isnan", x), t.apply("isinf", x)))


@converter("is_pos_inf")
def is_positive_infinity(t: StablehloNode) -> SSAValue:
    """Convert a test for infinity above 0."""
    x = t.value(0)
    return t.apply("eq", x, t.scalar(float("inf"), x))


@converter("is_neg_inf")
def is_negative_infinity(t: StablehloNode) -> SSAValue:
    """Convert a test for infinity below 0."""
    x = t.value(0)
    return t.apply("eq", x, t.scalar(float("-inf"), x))


@converter("convert")
def convert(t: StablehloNode) -> SSAValue:
    """Convert elements: floats to integers by truncation, and anything to bools by comparing with
    0. Integers of 2 and 4 bits keep their low bits.
    """
    x = decoded(t, t.value(0))
    if is_stored_only(t.element_type):
        return encoded(t, x, t.element_type, saturate=False)
    if t.element_type == i1 and element_type_of(x) != i1:
        return t.apply("ne", x, t.scalar(0, x))
    return t.cast(x, t.element_type)


@converter("batch_norm_inference")
def batch_norm(t: StablehloNode) -> SSAValue:
    """Return `(x - mean) / sqrt(variance + epsilon) * scale + offset` by features."""
    x, dim = t.value(0), t.integer("feature_index")
    shape: list[Extent] = [1] * len(shape_of(x))
    require_dim(dim, len(shape))
    shape[dim] = extents_of(x)[dim]
    scale, offset, mean, variance = (t.reshape(t.value(i), shape) for i in range(1, 5))
    padded = t.apply("add", variance, t.scalar(t.number("epsilon"), variance))
    factor = t.apply("mul", scale, t.apply("rsqrt", padded))
    return t.apply("add", t.apply("mul", t.apply("sub", x, mean), factor), offset)


@converter("map")
def mapped(t: StablehloNode) -> SSAValue:
    """Apply the region to the elements of all operands."""
    block, shape = region_of(t, len(t.op.operands)), t.extents(t.value(0))
    (result,) = returned_by(block)
    return Elements(t, dict(zip(block.args, t.op.operands, strict=True)), shape).repeated(result)


@converter("optimization_barrier")
def barrier(t: StablehloNode) -> list[SSAValue]:
    """Return the operands."""
    return list(t.op.operands)
