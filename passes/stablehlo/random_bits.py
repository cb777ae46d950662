"""Random bits of a state: Threefry and Philox, with the counters and in the order of XLA.

J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2,
3", 2011: a number is a function of a key and of its place.
"""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import SSAValue

from braid.dialects.braid.base import (
    element_type_of,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import bytes_of, is_computed_integer
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp
from braid.passes.stablehlo.node import StablehloNode, converter

_WORD = IntegerType(32, Signedness.UNSIGNED)
_LONG = IntegerType(64, Signedness.UNSIGNED)
_LOW = (1 << 32) - 1

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
"""Rotations of Threefry's rounds, four and four, and the constant of its third key word."""

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_PHILOX_ROUNDS = 10


@converter("rng_bit_generator")
def random_bits(t: StablehloNode) -> Sequence[SSAValue]:
    """Return the next state and bits, by Philox where none is said, as XLA does on the CPU."""
    state, algorithm = t.value(0), t.text("rng_algorithm", "DEFAULT")
    bits = t.op.results[1]
    if element_type_of(state) != _LONG or shape_of(state) not in ((2,), (3,)):
        t.unsupported(
            f"its state has type {state.type}",
            hint="use a state of type tensor<2xui64>, or of tensor<3xui64> for PHILOX",
        )
    element_type = element_type_of(bits)
    if not is_computed_integer(element_type) or bytes_of(element_type) < bytes_of(_WORD):
        t.unsupported(
            f"its bits have type {bits.type}", hint="take bits of 32 or 64, and convert them"
        )
    shape, is_long = t.numbers(bits), bytes_of(element_type) == bytes_of(_LONG)
    words = [t.part(state, 0, index, 1) for index in range(shape_of(state)[0])]
    if 0 in shape:
        empty = t.empty(1)
        assert empty is not None, "a dim has no elements"
        return [state, empty]
    if algorithm == "THREE_FRY" and len(words) == 2:
        following, found = _threefry(t, words, shape, is_long=is_long)
    elif algorithm in ("DEFAULT", "PHILOX"):
        following, found = philox(t, words, shape, is_long=is_long)
    else:
        t.fail(f"its algorithm is {algorithm}, and its state has type {state.type}")
    if element_type_of(found) != element_type:
        found = t.emit(elementwise("bitcast", found, element_type=element_type))
    return [t.emit(ConcatOp.get(following, 0)), found]


def _threefry(
    t: StablehloNode, state: Sequence[SSAValue], shape: Sequence[int], *, is_long: bool
) -> tuple[list[SSAValue], SSAValue]:
    """Return the next state and random numbers: halves of 64 bits, or of pairs along a dim."""
    key, counter = state
    extents = [*shape] if shape else [1]
    dim = next((d for d, n in enumerate(extents) if n % 2 == 0), extents.index(max(extents)))
    half = list(extents)
    half[dim] = extents[dim] if is_long else -(-extents[dim] // 2)
    count = math.prod(half)
    places = t.apply("add", t.emit(IotaOp.of(0, tensor_type(_LONG, [count]))), counter)
    pair = _threefry_words(t, _halves(t, key), _halves(t, places))
    following = [key, t.apply("add", counter, t.scalar(count, counter))]
    if is_long:
        return following, t.reshape(_joined(t, *pair), shape)
    apart = [*half[: dim + 1], 1, *half[dim + 1 :]]
    both = t.emit(ConcatOp.get([t.reshape(word, apart) for word in pair], dim + 1))
    half[dim] *= 2
    return following, t.reshape(t.part(t.reshape(both, half), dim, 0, extents[dim]), shape)


def _threefry_words(
    t: StablehloNode, key: Sequence[SSAValue], words: Sequence[SSAValue]
) -> tuple[SSAValue, SSAValue]:
    """Return two words for a key and a counter of two words: 20 rounds."""
    parity = t.apply("xor", t.apply("xor", *key), t.scalar(_PARITY, key[0]))
    keys = [*key, parity]
    x, y = (t.apply("add", word, own) for word, own in zip(words, key, strict=True))
    for step in range(5):
        for distance in _ROTATIONS[step % 2]:
            x = t.apply("add", x, y)
            left = t.apply("shift_left", y, t.scalar(distance, y))
            right = t.apply("shift_right", y, t.scalar(32 - distance, y))
            y = t.apply("xor", x, t.apply("or", left, right))
        x = t.apply("add", x, keys[(step + 1) % 3])
        second = t.apply("add", keys[(step + 2) % 3], t.scalar(step + 1, parity))
        y = t.apply("add", y, second)
    return x, y


def philox(
    t: StablehloNode, state: Sequence[SSAValue], shape: Sequence[int], *, is_long: bool
) -> tuple[list[SSAValue], SSAValue]:
    """Return the next state and random numbers; four words share one counter.

    A state of two has the key as the upper half of its counter.
    """
    key, low, high = (*state, state[0])[:3]
    total = math.prod(shape)
    count = -(-total // (2 if is_long else 4))
    counter = t.apply("add", t.emit(IotaOp.of(0, tensor_type(_LONG, [count]))), low)
    upper = t.apply("add", _carry(t, counter, low), high)
    words = _philox_words(t, _halves(t, key), [*_halves(t, counter), *_halves(t, upper)])
    parts = words
    if is_long:
        parts = [_joined(t, words[0], words[1]), _joined(t, words[2], words[3])]
    columns = [t.reshape(part, [count, 1]) for part in parts]
    flat = t.reshape(t.emit(ConcatOp.get(columns, 1)), [count * len(parts)])
    found = t.reshape(t.part(flat, 0, 0, total), shape)
    after = t.apply("add", low, t.scalar(count, low))
    following = [key, after]
    if len(state) == 3:
        following.append(t.apply("add", _carry(t, after, low), high))
    return following, found


def _carry(t: StablehloNode, total: SSAValue, part: SSAValue) -> SSAValue:
    """Return 1 where a sum with `part` was too large for its type, else 0."""
    return t.cast(t.apply("lt", total, part), _LONG)


def _philox_words(
    t: StablehloNode, key: Sequence[SSAValue], words: Sequence[SSAValue]
) -> list[SSAValue]:
    """Return four words for a key of two and a counter of four: 10 rounds."""
    (first, second), (a, b, c, d) = key, words
    for _ in range(_PHILOX_ROUNDS):
        (low_a, high_a), (low_c, high_c) = (
            _halves(t, t.apply("mul", t.cast(word, _LONG), t.scalar(factor, t.cast(word, _LONG))))
            for word, factor in zip((a, c), _MULTIPLIERS, strict=True)
        )
        a = t.apply("xor", t.apply("xor", high_c, b), first)
        c = t.apply("xor", t.apply("xor", high_a, d), second)
        b, d = low_c, low_a
        first, second = (
            t.apply("add", part, t.scalar(step, part))
            for part, step in zip((first, second), _KEY_STEPS, strict=True)
        )
    return [a, b, c, d]


def _halves(t: StablehloNode, long: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return the low and the high words of numbers of 64 bits."""
    low = t.apply("and", long, t.scalar(_LOW, long))
    high = t.apply("shift_right", long, t.scalar(32, long))
    return t.cast(low, _WORD), t.cast(high, _WORD)


def _joined(t: StablehloNode, low: SSAValue, high: SSAValue) -> SSAValue:
    """Return numbers of 64 bits of their words."""
    upper = t.cast(high, _LONG)
    return t.apply("or", t.cast(low, _LONG), t.apply("shift_left", upper, t.scalar(32, upper)))
