"""Elements and their indices as integers whose order is that of a selection.

A rank is an i64 that is larger the earlier an element comes: its value, then its index reversed.
The first of many elements is then a maximum of integers, which upstream computes in vectors.
"""

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.dtypes import bytes_of, is_float, is_unsigned
from braid.lowering.common.scalar_casts import constant, widen

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1
"""Below and above all ranks: no index is reversed to all zeros or all ones."""

_INDEX_BITS = 32
_LAST_INDEX = (1 << _INDEX_BITS) - 2


def can_rank(element_type: Attribute, extent: int) -> bool:
    """Whether elements of this type and their indices below `extent` fit a rank."""
    bits = 8 * bytes_of(element_type)
    return bits <= _INDEX_BITS - is_unsigned(element_type) and 0 <= extent <= _LAST_INDEX


def rank_of(
    builder: Builder,
    value: SSAValue,
    element_type: Attribute,
    index: SSAValue,
    *,
    ascending: bool,
) -> SSAValue:
    """The rank of `value`, stored as `element_type`, at `index`."""
    if is_float(element_type):
        key = _integer_in_order(builder, widen(builder, value))
    else:
        extend = arith.ExtUIOp if is_unsigned(element_type) else arith.ExtSIOp
        key = builder.insert(extend(value, i64)).result
    if ascending:
        key = builder.insert(arith.XOrIOp(key, constant(builder, -1, i64))).result
    high = builder.insert(arith.ShLIOp(key, constant(builder, _INDEX_BITS, i64))).result
    number = builder.insert(arith.IndexCastOp(index, i64)).result
    return builder.insert(arith.OrIOp(high, _reversed(builder, number))).result


def index_of(builder: Builder, rank: SSAValue) -> SSAValue:
    """The index in a rank, as i64."""
    mask = constant(builder, (1 << _INDEX_BITS) - 1, i64)
    return _reversed(builder, builder.insert(arith.AndIOp(rank, mask)).result)


def _reversed(builder: Builder, index: SSAValue) -> SSAValue:
    last = constant(builder, _LAST_INDEX, i64)
    return builder.insert(arith.SubiOp(last, index)).result


def _integer_in_order(builder: Builder, value: SSAValue) -> SSAValue:
    """An i64 for an f32: of the same order, one for both zeros, the largest for every NaN.

    Floats order like their bits as integers, except that below zero the bits are in reverse.
    """
    positive = builder.insert(arith.AddfOp(value, constant(builder, 0.0, f32))).result
    bits = builder.insert(arith.BitcastOp(positive, i32)).result
    sign = builder.insert(arith.ShRSIOp(bits, constant(builder, 31, i32))).result
    largest = constant(builder, (1 << 31) - 1, i32)
    flip = builder.insert(arith.AndIOp(sign, largest)).result
    ordered = builder.insert(arith.XOrIOp(bits, flip)).result
    is_nan = builder.insert(arith.CmpfOp(value, value, "uno")).result
    key = builder.insert(arith.SelectOp(is_nan, largest, ordered)).result
    return builder.insert(arith.ExtSIOp(key, i64)).result
