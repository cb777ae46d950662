"""Powers of integers."""

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.dtypes import is_unsigned
from braid.lowering.common.element_types import width_of
from braid.lowering.common.scalar_casts import constant
from braid.lowering.common.tensor_loops import for_loop


def integer_power(
    builder: Builder, base: SSAValue, exponent: SSAValue, element_type: Attribute
) -> SSAValue:
    """base to the power of exponent, wrapped; the part before the point if that is negative.

    By squaring: Knuth, "The Art of Computer Programming", volume 2, section 4.6.3.
    """
    one, zero = constant(builder, 1, base.type), constant(builder, 0, base.type)
    if is_unsigned(element_type):
        return _whole_power(builder, base, exponent, one, zero)
    positive = builder.insert(arith.MaxSIOp(exponent, zero)).result
    whole = _whole_power(builder, base, positive, one, zero)
    is_negative = builder.insert(arith.CmpiOp(exponent, zero, "slt")).result
    fraction = _reciprocal_power(builder, base, exponent, one, zero)
    return builder.insert(arith.SelectOp(is_negative, fraction, whole)).result


def _whole_power(
    builder: Builder, base: SSAValue, exponent: SSAValue, one: SSAValue, zero: SSAValue
) -> SSAValue:
    """One step per bit of the exponent, which is not negative."""

    def step(b: Builder, _: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        power, square, rest = carried
        bit = b.insert(arith.AndIOp(rest, one)).result
        is_set = b.insert(arith.CmpiOp(bit, zero, "ne")).result
        product = b.insert(arith.MuliOp(power, square)).result
        return [
            b.insert(arith.SelectOp(is_set, product, power)).result,
            b.insert(arith.MuliOp(square, square)).result,
            b.insert(arith.ShRUIOp(rest, one)).result,
        ]

    return for_loop(builder, width_of(base.type), [one, base, exponent], step)[0]


def _reciprocal_power(
    builder: Builder, base: SSAValue, exponent: SSAValue, one: SSAValue, zero: SSAValue
) -> SSAValue:
    """1 or -1 if the base is, with the sign of an odd power; 0 otherwise."""
    insert = builder.insert
    bit = insert(arith.AndIOp(exponent, one)).result
    is_even = insert(arith.CmpiOp(bit, zero, "eq")).result
    signed_unit = insert(arith.SelectOp(is_even, one, base)).result
    magnitude = insert(math.AbsIOp(base)).result
    is_unit = insert(arith.CmpiOp(magnitude, one, "eq")).result
    return insert(arith.SelectOp(is_unit, signed_unit, zero)).result
