"""Ops of StableHLO on the bits of numbers."""

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of, i1, is_computed_integer, is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp
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
    if i1 in (element_type, element_type_of(x)) and element_type != element_type_of(x):
        t.unsupported("it casts between bools and numbers", hint="compare with 0, or convert")
    wide, narrow = bytes_of(element_type), bytes_of(element_type_of(x))
    if wide > narrow:
        x = _packed(t, x, wide // narrow)
    elif wide < narrow:
        x = _unpacked(t, x, narrow // wide)
    return t.emit(elementwise("bitcast", x, element_type=element_type))


def _packed(t: StablehloNode, value: SSAValue, count: int) -> SSAValue:
    """Return unsigned integers of which each has the bits of `count` elements of the last dim."""
    *outer, extent = t.extents(value) or (1,)
    if extent != count:
        t.fail(f"the last dim has {extent} elements, of which one has {count}")
    words = _as_unsigned(t, value)
    width = 8 * bytes_of(element_type_of(words))
    kind, packed = IntegerType(width * count, Signedness.UNSIGNED), None
    for index in range(count):
        word = t.reshape(t.part(words, len(outer), index, 1), outer)
        wide = t.cast(word, kind)
        placed = t.apply("shift_left", wide, t.scalar(width * index, wide)) if index else wide
        packed = placed if packed is None else t.apply("or", packed, placed)
    assert packed is not None, "a wider element has several"
    return packed


def _unpacked(t: StablehloNode, value: SSAValue, count: int) -> SSAValue:
    """Return unsigned integers of which a new last dim has the `count` of each element."""
    extents, words = t.extents(value), _as_unsigned(t, value)
    width = 8 * bytes_of(element_type_of(words)) // count
    kind, mask = IntegerType(width, Signedness.UNSIGNED), t.scalar((1 << width) - 1, words)
    parts: list[SSAValue] = []
    for index in range(count):
        moved = t.apply("shift_right", words, t.scalar(width * index, words)) if index else words
        part = t.cast(t.apply("and", moved, mask), kind)
        parts.append(t.reshape(part, [*extents, 1]))
    return t.emit(ConcatOp.get(parts, len(extents)))


@converter("popcnt")
def count_ones(t: StablehloNode) -> SSAValue:
    """Count bits that are 1: in pairs, fours, bytes, then of all bytes (H. S. Warren, "Hacker's
    Delight", 5-1).
    """
    element_type = _require_integers(t)
    x = _as_unsigned(t, t.value(0))
    return t.emit(elementwise("bitcast", _ones(t, x), element_type=element_type))


@converter("count_leading_zeros")
def count_leading_zeros(t: StablehloNode) -> SSAValue:
    """Count the bits before the first 1: those that are not 1 where it fills all after it."""
    element_type = _require_integers(t)
    bits, x = 8 * bytes_of(element_type), _as_unsigned(t, t.value(0))
    distance = 1
    while distance < bits:
        x = t.apply("or", x, t.apply("shift_right", x, t.scalar(distance, x)))
        distance *= 2
    zeros = _ones(t, t.apply("not", x))
    return t.emit(elementwise("bitcast", zeros, element_type=element_type))


def _require_integers(t: StablehloNode) -> Attribute:
    element_type = element_type_of(t.value(0))
    if not is_computed_integer(element_type):
        t.fail(f"its operand is of {element_type}, expected integers")
    return element_type


def _as_unsigned(t: StablehloNode, value: SSAValue) -> SSAValue:
    bits = 8 * bytes_of(element_type_of(value))
    kind = IntegerType(bits, Signedness.UNSIGNED)
    return t.emit(elementwise("bitcast", value, element_type=kind))


def _ones(t: StablehloNode, x: SSAValue) -> SSAValue:
    """Return how many bits of unsigned integers are 1."""
    bits = 8 * bytes_of(element_type_of(x))

    def repeated(byte: int) -> SSAValue:
        return t.scalar(int.from_bytes(bytes([byte]) * (bits // 8), "little"), x)

    def shifted(value: SSAValue, distance: int) -> SSAValue:
        return t.apply("shift_right", value, t.scalar(distance, x))

    x = t.apply("sub", x, t.apply("and", shifted(x, 1), repeated(0x55)))
    fours = t.apply("and", shifted(x, 2), repeated(0x33))
    x = t.apply("add", t.apply("and", x, repeated(0x33)), fours)
    x = t.apply("and", t.apply("add", x, shifted(x, 4)), repeated(0x0F))
    return shifted(t.apply("mul", x, repeated(0x01)), bits - 8)


_WIDTHS = {"bf16": (8, 7), "f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}
"""The bits of exponent and mantissa."""


@converter("reduce_precision")
def reduce_precision(t: StablehloNode) -> SSAValue:
    """Round to a mantissa and an exponent of fewer bits: halves to even, what is too large to
    infinity, what is too small to 0.
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
