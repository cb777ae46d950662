"""Shifts by any distance: hardware and LLVM define them only below the width."""

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.dtypes import i1, is_unsigned
from braid.lowering.common.scalar_casts import constant, width_of


def shift_left(builder: Builder, values: Sequence[SSAValue], element_type: Attribute) -> SSAValue:
    """The first value shifted left by the second; 0 from the width on."""
    value, distance = values
    inside = _is_below_width(builder, distance, element_type)
    shifted = builder.insert(arith.ShLIOp(value, _or_zero(builder, inside, distance))).result
    return _or_zero(builder, inside, shifted)


def shift_right(builder: Builder, values: Sequence[SSAValue], element_type: Attribute) -> SSAValue:
    """The first value shifted right by the second; from the width on 0, or -1 for negatives."""
    value, distance = values
    inside = _is_below_width(builder, distance, element_type)
    if is_unsigned(element_type) or element_type == i1:
        shifted = builder.insert(arith.ShRUIOp(value, _or_zero(builder, inside, distance))).result
        return _or_zero(builder, inside, shifted)
    most = constant(builder, width_of(element_type) - 1, distance.type)
    bounded = builder.insert(arith.SelectOp(inside, distance, most)).result
    return builder.insert(arith.ShRSIOp(value, bounded)).result


def _is_below_width(builder: Builder, distance: SSAValue, element_type: Attribute) -> SSAValue:
    width = constant(builder, width_of(element_type), distance.type)
    return builder.insert(arith.CmpiOp(distance, width, "ult")).result


def _or_zero(builder: Builder, condition: SSAValue, value: SSAValue) -> SSAValue:
    zero = constant(builder, 0, value.type)
    return builder.insert(arith.SelectOp(condition, value, zero)).result
