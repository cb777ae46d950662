"""Ops of StableHLO on the bits of numbers."""

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of, is_computed_integer, is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.passes.stablehlo.node import StablehloNode, converter


def in_total_order(t: StablehloNode, value: SSAValue) -> SSAValue:
    """Return integers in the total order of floats: IEEE 754, 5.10; other values as they are."""
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
    """Shift the bits as integers of this signedness, which says what is filled in."""
    element_type = t.element_type
    if not is_computed_integer(element_type):
        t.fail(f"its operands are of {element_type}, expected integers")
    kind = IntegerType(8 * bytes_of(element_type), signedness)
    if kind == element_type:
        return t.apply("shift_right", *t.op.operands)
    values = [t.emit(elementwise("bitcast", v, element_type=kind)) for v in t.op.operands]
    shifted = t.apply("shift_right", *values)
    return t.emit(elementwise("bitcast", shifted, element_type=element_type))


_BITS = {"bf16": (8, 7), "f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}
"""The bits of exponent and mantissa."""


@converter("reduce_precision")
def reduce_precision(t: StablehloNode) -> SSAValue:
    """Convert a change of precision, which is supported only where nothing is lost."""
    x = t.value(0)
    bits = (t.integer("exponent_bits"), t.integer("mantissa_bits"))
    if not is_float(element_type_of(x)) or bits != _BITS.get(str(element_type_of(x))):
        t.unsupported(
            f"the result has {bits[0]} bits of exponent and {bits[1]} of mantissa",
            hint="convert to a type of this precision and back",
        )
    return x
