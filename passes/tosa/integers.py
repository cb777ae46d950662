"""Ops of TOSA on integers: shifts that round, scaling, tables."""

import numpy as np
from ml_dtypes import iinfo
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import i64, is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.passes.conversion.bit_counts import as_unsigned, leading_zeros
from braid.passes.tosa.node import TosaNode, converter

_BITS_BETWEEN = 7
"""The bits of a 16-bit index between two entries of a table."""


@converter("arithmetic_right_shift")
def arithmetic_right_shift(t: TosaNode) -> SSAValue:
    """Convert an arithmetic shift; with `round`, the last bit that is shifted out is added."""
    x, distance = t.value(0), t.value(1)
    shifted = t.apply("shift_right", x, distance)
    if not t.flag("round"):
        return shifted
    one, zero = t.scalar(1, x), t.scalar(0, x)
    before = t.apply("maximum", t.apply("sub", distance, one), zero)
    last = t.apply("and", t.apply("shift_right", x, before), one)
    rounded = t.apply("add", shifted, last)
    return t.apply("select", t.apply("gt", distance, zero), rounded, shifted)


@converter("logical_right_shift")
def logical_right_shift(t: TosaNode) -> SSAValue:
    """Convert a shift that fills in zeros, whatever the sign."""
    shifted = t.apply("shift_right", as_unsigned(t, t.value(0)), as_unsigned(t, t.value(1)))
    return t.emit(elementwise("bitcast", shifted, element_type=t.element_type))


@converter("clz")
def count_leading_zeros(t: TosaNode) -> SSAValue:
    """Count the bits before the first 1."""
    zeros = leading_zeros(t, as_unsigned(t, t.value(0)))
    return t.emit(elementwise("bitcast", zeros, element_type=t.element_type))


@converter("negate")
def negate(t: TosaNode) -> SSAValue:
    """Return `-(x - zero point) + zero point`, saturated, for integers."""
    x = t.value(0)
    if is_float(element_type_of(x)):
        return t.apply("neg", x)
    zero_points = t.zero_point(1) + t.zero_point(2)
    wide = t.cast(x, i64)
    return saturated(t, t.apply("sub", t.scalar(zero_points, wide), wide), t.element_type)


@converter("mul")
def mul(t: TosaNode) -> SSAValue:
    """Multiply; products of 32-bit integers may be shifted to the right, rounded to nearest."""
    a, b = t.value(0), t.value(1)
    shift = t.known_number(2)
    if not shift:
        return t.apply("mul", t.cast(a, t.element_type), t.cast(b, t.element_type))
    product = t.apply("mul", t.cast(a, i64), t.cast(b, i64))
    return t.cast(_rounding_shift(t, product, t.scalar(shift, product)), t.element_type)


@converter("rescale")
def rescale(t: TosaNode) -> SSAValue:
    """Return `(x - zero point) · multiplier / 2^shift + zero point`, rounded and saturated.

    The multiplier and the shift are one number, or one for each channel, the last dim.
    """
    x = t.value(0)
    mode = t.text("rounding_mode", "SINGLE_ROUND")
    if mode != "SINGLE_ROUND":
        t.unsupported(f"its rounding_mode is {mode}", hint="use SINGLE_ROUND")
    if t.flag("input_unsigned") or t.flag("output_unsigned"):
        t.unsupported("its values are unsigned", hint="quantize to signed integers")
    wide = t.cast(x, i64)
    wide = t.apply("sub", wide, t.scalar(t.zero_point(3), wide))
    rank = t.result_type.get_num_dims()

    def factors(index: int) -> SSAValue:
        numbers = t.known_operand(index).astype(np.int64).reshape(-1)
        return t.constant(numbers.reshape([1] * (rank - 1) + [-1]) if rank else numbers[0])

    product = t.apply("mul", wide, factors(1))
    scaled = _rounding_shift(t, product, factors(2))
    moved = t.apply("add", scaled, t.scalar(t.zero_point(4), scaled))
    return saturated(t, moved, t.element_type)


def _rounding_shift(t: TosaNode, x: SSAValue, shift: SSAValue) -> SSAValue:
    """Return `(x + 2^(shift - 1)) / 2^shift` rounded down, for shifts of at least 1."""
    one = t.scalar(1, x)
    half = t.apply("shift_left", one, t.apply("sub", shift, one))
    return t.apply("shift_right", t.apply("add", x, half), shift)


def saturated(t: TosaNode, x: SSAValue, target: Attribute) -> SSAValue:
    """Return the integers in a narrower type, or the nearest that it has."""
    limits = iinfo(to_numpy(target))
    return t.cast(t.clamp(x, t.scalar(limits.min, x), t.scalar(limits.max, x)), target)


@converter("table")
def table(t: TosaNode) -> SSAValue:
    """Return an entry for each of the 256 values of an 8-bit integer.

    For 16-bit integers there are 513 entries, 128 values apart; what is between is interpolated,
    with 7 more bits.
    """
    x = t.value(0)
    wide = t.cast(x, i64)
    if to_numpy(element_type_of(x)) == np.int8:
        return _entry(t, t.apply("add", wide, t.scalar(128, wide)))
    if to_numpy(element_type_of(x)) != np.int16:
        t.fail(f"its indices are {element_type_of(x)}, expected i8 or i16")
    distance = t.scalar(_BITS_BETWEEN, wide)
    first = t.apply("add", t.apply("shift_right", wide, distance), t.scalar(256, wide))
    beyond = t.apply("and", wide, t.scalar((1 << _BITS_BETWEEN) - 1, wide))
    low, high = (
        t.cast(_entry(t, place), i64)
        for place in (first, t.apply("add", first, t.scalar(1, first)))
    )
    slope = t.apply("mul", t.apply("sub", high, low), beyond)
    found = t.apply("add", t.apply("shift_left", low, distance), slope)
    return t.cast(found, t.element_type)


def _entry(t: TosaNode, place: SSAValue) -> SSAValue:
    return t.emit(GatherOp.get(t.value(1), place, 0))
