"""Keys: i32 or i64 in the order in which elements are selected, one for each number or vector."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, VectorType, f32, f64, i32, i64
from xdsl.ir import Attribute

from braid.dialects.braid.dtypes import bytes_of, is_unsigned
from braid.lowering.emit.compare import choose, compare
from braid.lowering.emit.emitter import Emitter, Value


def word_of(element_type: Attribute) -> IntegerType:
    """Return the type of keys for these elements: integers as wide, and at least 32 bits."""
    return i64 if bytes_of(element_type) > bytes_of(i32) else i32


def largest_of(word: IntegerType) -> int:
    """Return the key that comes after all others."""
    return (1 << (word.width.data - 1)) - 1


def sign_of(word: IntegerType) -> int:
    """Return the bit that is the sign, and the key before all others."""
    return -1 - largest_of(word)


def key_of(
    e: Emitter, value: Value, element_type: Attribute, *, largest: bool, nan_first: bool = False
) -> Value:
    """Return the smaller, the earlier `value` comes, stored as `element_type`.

    Both zeros have one key, and so has every NaN, which is above all numbers, or with `nan_first`
    before them in either order.
    """
    word = word_of(element_type)
    key_type = e.vector_type(word) if isinstance(value.type, VectorType) else word
    if isinstance(element_type, AnyFloat):
        key = _in_order(e, value, word, key_type, is_first=nan_first and not largest)
    elif bytes_of(element_type) < bytes_of(word):
        extend = arith.ExtUIOp if is_unsigned(element_type) else arith.ExtSIOp
        key = e.make(extend, [value], key_type)
    else:
        key = value
        if is_unsigned(element_type):
            key = e.apply(arith.XOrIOp, key, e.constant(sign_of(word), key_type))
    return e.apply(arith.XOrIOp, key, e.constant(-1, key_type)) if largest else key


def _in_order(
    e: Emitter, value: Value, word: IntegerType, key_type: Attribute, *, is_first: bool
) -> Value:
    """Return a float's bits as an integer in the order of floats; below zero it is the reverse.

    NaN `is_first`, or the last.
    """
    is_vector = isinstance(value.type, VectorType)
    kind = f64 if word == i64 else f32
    wide = e.vector_type(kind) if is_vector else kind
    if value.type != wide:
        value = e.make(arith.ExtFOp, [value], wide)
    positive = e.apply(arith.AddfOp, value, e.constant(0.0, wide))
    bits = e.make(arith.BitcastOp, [positive], key_type)
    sign = e.apply(arith.ShRSIOp, bits, e.constant(word.width.data - 1, key_type))
    largest = e.constant(largest_of(word), key_type)
    ordered = e.apply(arith.XOrIOp, bits, e.apply(arith.AndIOp, sign, largest))
    return choose(
        e,
        compare(e, "uno", value, value),
        e.constant(sign_of(word) if is_first else largest_of(word), key_type),
        ordered,
    )
