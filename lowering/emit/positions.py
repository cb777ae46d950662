"""Positions along a dim that tensors of indices give."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType

from braid.dialects.braid.dtypes import i64
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.support.sizes.expression import Extent


def position_of(e: Emitter, index: Value, extent: Extent, without_sign: bool) -> Index:
    """Return `index`, from the end if it is negative, brought inside a dim of `extent` elements.

    `without_sign` says that no index of that type is negative.
    """
    if index.type != i64:
        index = e.insert((arith.ExtUIOp if without_sign else arith.ExtSIOp)(index, i64))
    zero, length, last = (_number(e, each) for each in (0, extent, extent - 1))
    is_negative = e.insert(arith.CmpiOp(index, zero, "slt"))
    from_end = e.insert(arith.AddiOp(index, length))
    counted = e.insert(arith.SelectOp(is_negative, from_end, index))
    inside = e.insert(arith.MaxSIOp(e.insert(arith.MinSIOp(counted, last)), zero))
    return e.insert(arith.IndexCastOp(inside, IndexType()))


def _number(e: Emitter, extent: Extent) -> Value:
    if isinstance(extent, int):
        return e.constant(extent, i64)
    return e.make(arith.IndexCastOp, [e.index(extent)], i64)
