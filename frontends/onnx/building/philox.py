"""Random numbers as functions of a key and of positions: Philox 4x32 with ten rounds.

Source: Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. Words
of 32 bits are computed with in ui64, where a product of two is exact.
"""

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import bytes_of, f32, from_numpy
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, scalar
from braid.support.sizes.expression import Extent

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
"""The addend of each word of the key between rounds."""
WORD = (1 << 32) - 1
_UI64 = from_numpy(np.uint64)


@dataclass(frozen=True)
class Key:
    """Two words of 32 bits that choose a sequence, each `tensor<1xui64>`, and one of its streams.

    Streams with the same key are independent of each other.
    """

    low: SSAValue
    high: SSAValue
    stream: int = 0


def constant_key(b: Builder, low: int, high: int = 0, stream: int = 0) -> Key:
    """Return the key of two known words."""
    first, second = (b.constant(np.array([word], np.uint64)) for word in (low, high))
    return Key(first, second, stream)


def key_of(b: Builder, number: SSAValue, stream: int) -> Key:
    """Return the key that the bits of a `tensor<1xui64>` are."""
    return Key(_low(b, number), _high(b, number), stream)


def random_words(b: Builder, key: Key, count: Extent) -> tuple[SSAValue, ...]:
    """Return four `tensor<count x ui64>` of words; element i is that of the counter (i, stream)."""
    positions = b.emit(IotaOp.of(0, tensor_type(_UI64, [count])))
    is_short = isinstance(count, int) and count <= WORD
    zero = b.constant(np.zeros(1, np.uint64))
    words = (
        positions if is_short else _low(b, positions),
        zero if is_short else _high(b, positions),
        b.constant(np.array([key.stream], np.uint64)),
        zero,
    )
    low, high = key.low, key.high
    for number in range(_ROUNDS):
        if number:
            low, high = (
                _low(b, apply(b, "add", word, scalar(b, step, word)))
                for word, step in zip((low, high), _WEYL, strict=True)
            )
        words = _round(b, words, low, high)
    return words


def _round(
    b: Builder, words: tuple[SSAValue, ...], low: SSAValue, high: SSAValue
) -> tuple[SSAValue, ...]:
    first, second = (
        apply(b, "mul", word, scalar(b, factor, word))
        for word, factor in zip(words[::2], _MULTIPLIERS, strict=True)
    )
    return (
        apply(b, "xor", apply(b, "xor", _high(b, second), words[1]), low),
        _low(b, second),
        apply(b, "xor", apply(b, "xor", _high(b, first), words[3]), high),
        _low(b, first),
    )


def _low(b: Builder, value: SSAValue) -> SSAValue:
    return apply(b, "and", value, scalar(b, WORD, value))


def _high(b: Builder, value: SSAValue) -> SSAValue:
    return _shifted(b, value, 32)


def _shifted(b: Builder, value: SSAValue, bits: int) -> SSAValue:
    return apply(b, "shift_right", value, scalar(b, bits, value))


def uniform(b: Builder, words: tuple[SSAValue, ...], element_type: Attribute) -> SSAValue:
    """Return numbers in [0, 1), equally far apart, as many as the float type has exactly there."""
    if element_type == f64:
        return _scaled(b, _53_bits(b, words), 53, f64)
    digits = {2: 11, 4: 24}[bytes_of(element_type)] if str(element_type) != "bf16" else 8
    return _scaled(b, _shifted(b, words[0], 32 - digits), digits, element_type)


def standard_normal(b: Builder, words: tuple[SSAValue, ...], element_type: Attribute) -> SSAValue:
    """Return numbers of mean 0 and variance 1 in f32 or f64.

    Source: Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
    """
    if element_type == f64:
        first, bits, angle = _53_bits(b, words), 53, uniform(b, words[2:], f64)
    else:
        first, bits, angle = words[0], 32, uniform(b, words[1:], f32)
    inside = _scaled(b, apply(b, "add", first, scalar(b, 1, first)), bits, element_type)
    squared = apply(b, "mul", apply(b, "log", inside), scalar(b, -2, inside))
    turn = apply(b, "mul", angle, scalar(b, 2 * np.pi, angle))
    return apply(b, "mul", apply(b, "sqrt", squared), apply(b, "cos", turn))


def _53_bits(b: Builder, words: tuple[SSAValue, ...]) -> SSAValue:
    """Return 27 bits of the first word before 26 of the second."""
    high = _shifted(b, words[0], 5)
    high = apply(b, "shift_left", high, scalar(b, 26, high))
    return apply(b, "or", high, _shifted(b, words[1], 6))


def _scaled(b: Builder, integers: SSAValue, bits: int, element_type: Attribute) -> SSAValue:
    """Return integers of `bits` bits as fractions of 1, which are exact in all types here."""
    value = cast(b, integers, element_type)
    return apply(b, "mul", value, scalar(b, 0.5**bits, value))
