"""Counts of the bits of integers, for the dialects that have ops of them."""

from typing import Any

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.elementwise import elementwise
from braid.passes.conversion.replacement import Replacement

_Node = Replacement[Any]


def as_unsigned(t: _Node, value: SSAValue) -> SSAValue:
    """Return the bits of numbers as unsigned integers of as many bytes."""
    kind = IntegerType(8 * bytes_of(element_type_of(value)), Signedness.UNSIGNED)
    return t.emit(elementwise("bitcast", value, element_type=kind))


def leading_zeros(t: _Node, x: SSAValue) -> SSAValue:
    """Return how many bits of unsigned integers are before the first 1.

    These are the bits that are not 1 where it fills all after it.
    """
    bits, distance = 8 * bytes_of(element_type_of(x)), 1
    while distance < bits:
        x = t.apply("or", x, t.apply("shift_right", x, t.scalar(distance, x)))
        distance *= 2
    return count_ones(t, t.apply("not", x))


def count_ones(t: _Node, x: SSAValue) -> SSAValue:
    """Return how many bits of unsigned integers are 1.

    They are counted in pairs, fours, bytes, then of all bytes (H. S. Warren, "Hacker's Delight",
    5-1).
    """
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
