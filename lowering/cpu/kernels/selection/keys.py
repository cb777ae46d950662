"""Keys: i32 in the order in which elements are selected, one for each number or vector of them."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, VectorType, f32, i32
from xdsl.ir import Attribute

from braid.dialects.braid.dtypes import bytes_of, is_unsigned
from braid.lowering.cpu.kernels.emit.compare import choose, compare
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Value

LARGEST = (1 << 31) - 1
SIGN = -(1 << 31)


def key_of(
    e: Emitter, value: Value, element_type: Attribute, *, largest: bool, nan_first: bool = False
) -> Value:
    """The smaller, the earlier `value` comes, stored as `element_type` of at most 32 bits.

    One for both zeros, and one for every NaN, which is above all numbers, or with `nan_first`
    before them whichever order that is.
    """
    key_type = e.vector_type(i32) if isinstance(value.type, VectorType) else i32
    if isinstance(element_type, AnyFloat):
        key = _in_order(e, value, key_type, SIGN if nan_first and not largest else LARGEST)
    elif bytes_of(element_type) < bytes_of(i32):
        extend = arith.ExtUIOp if is_unsigned(element_type) else arith.ExtSIOp
        key = e.make(extend, [value], key_type)
    else:
        key = value
        if is_unsigned(element_type):
            key = e.apply(arith.XOrIOp, key, e.constant(SIGN, key_type))
    return e.apply(arith.XOrIOp, key, e.constant(-1, key_type)) if largest else key


def _in_order(e: Emitter, value: Value, key_type: Attribute, nan: int) -> Value:
    """Floats order like their bits as integers, except that below zero these are in reverse."""
    is_vector = isinstance(value.type, VectorType)
    wide = e.vector_type(f32) if is_vector else f32
    if value.type != wide:
        value = e.make(arith.ExtFOp, [value], wide)
    positive = e.apply(arith.AddfOp, value, e.constant(0.0, wide))
    bits = e.make(arith.BitcastOp, [positive], key_type)
    sign = e.apply(arith.ShRSIOp, bits, e.constant(31, key_type))
    largest = e.constant(LARGEST, key_type)
    ordered = e.apply(arith.XOrIOp, bits, e.apply(arith.AndIOp, sign, largest))
    return choose(e, compare(e, "uno", value, value), e.constant(nan, key_type), ordered)
