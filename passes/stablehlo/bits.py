"""Ops of StableHLO on the bits of numbers."""

from collections.abc import Callable
from typing import cast

import numpy as np
from xdsl.dialects.builtin import FixedBitwidthType, IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of, i1, is_computed_integer, is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp
from braid.passes.conversion.bit_counts import as_unsigned, count_ones, leading_zeros
from braid.passes.stablehlo.node import StablehloNode, converter


def in_total_order(t: StablehloNode, value: SSAValue) -> SSAValue:
    """Return integers in the total order of floats: IEEE 754, 5.10; other values do not change."""
    element_type = element_type_of(value)
    if not is_float(element_type):
        return value
    bits = 8 * bytes_of(element_type)
    word = bits_of(t, value)
    sign = t.apply("shift_right", word, t.scalar(bits - 1, word))
    magnitude = t.apply("and", sign, t.scalar(np.iinfo(to_numpy(IntegerType(bits))).max, word))
    return t.apply("xor", word, magnitude)


def is_negative(t: StablehloNode, value: SSAValue) -> SSAValue:
    """Return whether floats have a sign, as -0 has."""
    word = bits_of(t, value)
    return t.apply("lt", word, t.scalar(0, word))


def bits_of(t: StablehloNode, value: SSAValue) -> SSAValue:
    """Return the bits of floats as signed integers."""
    word = IntegerType(8 * bytes_of(element_type_of(value)))
    return t.emit(elementwise("bitcast", value, element_type=word))


@converter("shift_right_logical")
def shift_right_logical(t: StablehloNode) -> SSAValue:
    """Convert a shift to the right that fills in zeros, whatever the sign."""
    return _shifted_right(t, Signedness.UNSIGNED)


@converter("shift_right_arithmetic")
def shift_right_arithmetic(t: StablehloNode) -> SSAValue:
    """Convert a shift to the right that fills in the first bit, also of unsigned integers."""
    return _shifted_right(t, Signedness.SIGNLESS)


def _shifted_right(t: StablehloNode, signedness: Signedness) -> SSAValue:
    """Shift the bits as integers of this signedness, which decides how they are filled."""
    element_type = t.element_type
    if not is_computed_integer(element_type):
        t.fail(f"its operands are of {element_type}, expected integers")
    kind = IntegerType(8 * bytes_of(element_type), signedness)
    if kind == element_type:
        return t.apply("shift_right", *t.op.operands)
    values = [t.emit(elementwise("bitcast", v, element_type=kind)) for v in t.op.operands]
    shifted = t.apply("shift_right", *values)
    return t.emit(elementwise("bitcast", shifted, element_type=element_type))


@converter("bitcast_convert")
def bitcast(t: StablehloNode) -> SSAValue:
    """Cast bits; a wider element consists of a last dim of narrower ones, the lowest bits first."""
    x, element_type = t.value(0), t.element_type
    given, wanted = _width(element_type_of(x)), _width(element_type)
    if given == wanted and i1 not in (element_type, element_type_of(x)):
        return t.emit(elementwise("bitcast", x, element_type=element_type))
    words = _as_unsigned(t, x)
    if wanted > given:
        words = _packed(t, words, given, wanted)
    elif wanted < given:
        words = _unpacked(t, words, given, wanted)
    if element_type == i1:
        return t.apply("ne", words, t.scalar(0, words))
    return t.emit(elementwise("bitcast", words, element_type=element_type))


def _width(element_type: Attribute) -> int:
    """Return the bits of a number, which may be fewer than it takes in memory."""
    if isinstance(element_type, IntegerType):
        return cast(IntegerType, element_type).width.data
    return cast(FixedBitwidthType, element_type).bitwidth


def _packed(t: StablehloNode, words: SSAValue, given: int, wanted: int) -> SSAValue:
    """Return unsigned integers of which each has the bits of all elements of the last dim."""
    *outer, extent = t.extents(words) or (1,)
    if extent != wanted // given:
        t.fail(f"the last dim has {extent} elements, of which one has {wanted // given}")
    kind = IntegerType(max(wanted, 8), Signedness.UNSIGNED)
    packed: SSAValue | None = None
    for index in range(wanted // given):
        word = t.reshape(t.part(words, len(outer), index, 1), outer)
        wide = t.cast(word, kind)
        placed = t.apply("shift_left", wide, t.scalar(given * index, wide)) if index else wide
        packed = placed if packed is None else t.apply("or", packed, placed)
    assert packed is not None, "a wider element has several"
    return packed


def _unpacked(t: StablehloNode, words: SSAValue, given: int, wanted: int) -> SSAValue:
    """Return unsigned integers of which a new last dim has those in the bits of each element."""
    extents = t.extents(words)
    kind = IntegerType(max(wanted, 8), Signedness.UNSIGNED)
    mask = t.scalar((1 << wanted) - 1, words)
    parts: list[SSAValue] = []
    for index in range(given // wanted):
        moved = t.apply("shift_right", words, t.scalar(wanted * index, words)) if index else words
        part = t.cast(t.apply("and", moved, mask), kind)
        parts.append(t.reshape(part, [*extents, 1]))
    return t.emit(ConcatOp.get(parts, len(extents)))


@converter("popcnt")
def popcnt(t: StablehloNode) -> SSAValue:
    """Count the bits that are 1."""
    return _counted(t, count_ones)


@converter("count_leading_zeros")
def count_leading_zeros(t: StablehloNode) -> SSAValue:
    """Count the bits before the first 1."""
    return _counted(t, leading_zeros)


def _counted(t: StablehloNode, count: Callable[[StablehloNode, SSAValue], SSAValue]) -> SSAValue:
    element_type = element_type_of(t.value(0))
    if not is_computed_integer(element_type):
        t.fail(f"its operand is of {element_type}, expected integers")
    counts = count(t, _as_unsigned(t, t.value(0)))
    return t.emit(elementwise("bitcast", counts, element_type=element_type))


def _as_unsigned(t: StablehloNode, value: SSAValue) -> SSAValue:
    if t.is_bool(value):
        return t.cast(value, IntegerType(8, Signedness.UNSIGNED))
    return as_unsigned(t, value)


_WIDTHS = {"bf16": (8, 7), "f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}
"""The bits of exponent and mantissa."""


@converter("reduce_precision")
def reduce_precision(t: StablehloNode) -> SSAValue:
    """Round to a mantissa and an exponent of fewer bits: halves to even, too large numbers to
    infinity, too small ones to 0.
    """
    x, element_type = t.value(0), element_type_of(t.value(0))
    exponent, mantissa = t.integer("exponent_bits"), t.integer("mantissa_bits")
    if str(element_type) not in _WIDTHS or exponent < 1 or mantissa < 0:
        t.fail(f"{exponent} bits of exponent and {mantissa} of mantissa of {element_type}")
    exponents, mantissas = _WIDTHS[str(element_type)]
    word = _as_unsigned(t, x)
    sign = t.apply("and", word, t.scalar(1 << (exponents + mantissas), word))
    size = t.apply("xor", word, sign)
    infinity = t.scalar(((1 << exponents) - 1) << mantissas, word)
    rounded = size
    if mantissa < mantissas:
        rounded = _rounded(t, size, mantissas - mantissa)
    if exponent < exponents:
        bias, own = (1 << (exponent - 1)) - 1, (1 << (exponents - 1)) - 1
        largest = t.scalar(((own + bias + 1) << mantissas) - 1, word)
        least = t.scalar((own - bias + 1) << mantissas, word)
        rounded = t.apply("select", t.apply("gt", rounded, largest), infinity, rounded)
        small = t.apply("lt", rounded, least)
        rounded = t.apply("select", small, t.scalar(0, word), rounded)
    is_nan = t.apply("gt", size, infinity)
    kept = size if mantissa else infinity
    found = t.apply("or", sign, t.apply("select", is_nan, kept, rounded))
    return t.emit(elementwise("bitcast", found, element_type=element_type))


def _rounded(t: StablehloNode, size: SSAValue, dropped: int) -> SSAValue:
    """Return numbers without their last bits, rounded to nearest, halves to even."""
    last = t.apply("and", t.apply("shift_right", size, t.scalar(dropped, size)), t.scalar(1, size))
    half = t.scalar((1 << (dropped - 1)) - 1, size)
    total = t.apply("add", size, t.apply("add", last, half))
    shifted = t.apply("shift_right", total, t.scalar(dropped, size))
    return t.apply("shift_left", shifted, t.scalar(dropped, size))
