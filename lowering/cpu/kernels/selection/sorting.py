"""Stable sorts of keys with their numbers, of as many as only running the kernel shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, IntegerType

from braid.lowering.cpu.kernels.selection.keys import sign_of
from braid.lowering.cpu.kernels.selection.words import Words
from braid.lowering.emit.compare import choose, compare
from braid.lowering.emit.emitter import Emitter, Index, Value

DIGIT_VALUES = 256
"""The number of values of a digit, a byte of a key."""


def digits_of(word: IntegerType) -> int:
    """Return the number of digits of a key, which is even."""
    return word.width.data // 8


@dataclass(frozen=True)
class Keyed:
    """Keys, and the numbers of the elements that they belong to."""

    keys: Words
    numbers: Words

    def move(self, e: Emitter, place: Index, target: "Keyed", to: Index) -> None:
        """Copy one element."""
        target.keys.store(e, self.keys.load(e, place), to)
        target.numbers.store(e, self.numbers.load(e, place), to)


def iota(e: Emitter, word: IntegerType) -> Value:
    """Return 0, 1, 2, …, one in each lane."""
    type = e.vector_type(word)
    values = DenseIntOrFPElementsAttr.from_list(type, list(range(e.lanes)))
    return e.insert(arith.ConstantOp(values, type))


def sort_few(e: Emitter, all: Keyed, count: Index, most: int, spare: Keyed, places: Words) -> None:
    """Sort the first `most` of `count` elements by counting how many come before each.

    A vector has more `places`; its first `most` positions in `all`, and one more in `spare`, are
    written.
    """
    lanes, word = e.lanes, places.word
    one, none = (e.constant(n, e.vector_type(word)) for n in (1, 0))

    def block(first: Index) -> None:
        keys = all.keys.load_vector(e, first)
        last = e.minimum(e.add(first, lanes), count)

        def counted(before: Sequence[Value], is_before: Value) -> Sequence[Value]:
            return [e.apply(arith.AddiOp, before[0], choose(e, is_before, one, none))]

        def other(place: Index) -> Value:
            return e.broadcast(all.keys.load(e, place))

        def among(place: Index, before: Sequence[Value]) -> Sequence[Value]:
            key = other(place)
            distance = e.make(arith.IndexCastOp, [e.index(e.sub(place, first))], word)
            is_earlier = compare(e, "sgt", iota(e, word), e.broadcast(distance))
            is_equal = e.apply(arith.AndIOp, compare(e, "eq", key, keys), is_earlier)
            return counted(before, e.apply(arith.OrIOp, compare(e, "slt", key, keys), is_equal))

        before = e.carry(
            0, first, 1, [none], lambda i, b: counted(b, compare(e, "sle", other(i), keys))
        )
        before = e.carry(first, last, 1, before, among)
        before = e.carry(
            last, count, 1, before, lambda i, b: counted(b, compare(e, "slt", other(i), keys))
        )
        places.store_vector(e, before[0], 0)

        def put(place: Index) -> None:
            rank = places.load_index(e, e.sub(place, first))
            all.move(e, place, spare, e.minimum(rank, most))

        e.loop(first, last, 1, put)

    e.loop(0, count, lanes, block)
    e.loop(0, e.minimum(count, most), 1, lambda i: spare.move(e, i, all, i))


def sort_many(
    e: Emitter, all: Keyed, count: Index, spare: Keyed, counts: Words, digits: int | None = None
) -> None:
    """Sort all of `count`, digit by digit from the last one on.

    Keys differ only in their last `digits`, an even number; the other digits are ignored.
    `counts` has `DIGIT_VALUES` words for each digit.
    """
    word = counts.word
    zeros, digits = e.constant(0, e.vector_type(word)), digits or digits_of(word)
    words = digits * DIGIT_VALUES
    e.loop(0, words, e.lanes, lambda i: counts.store_vector(e, zeros, i))

    def count_digits(place: Index) -> None:
        key = all.keys.load(e, place)
        for digit in range(digits):
            _add_one(
                e, counts, _digit(e, word, key, e.constant(8 * digit, word)), digit * DIGIT_VALUES
            )

    e.loop(0, count, 1, count_digits)

    def begin(value: Index, before: Sequence[Value]) -> Sequence[Value]:
        sums: list[Value] = []
        for digit, total in enumerate(before):
            at = e.add(value, digit * DIGIT_VALUES)
            found = counts.load(e, at)
            counts.store(e, total, at)
            sums.append(e.apply(arith.AddiOp, total, found))
        return sums

    e.carry(0, DIGIT_VALUES, 1, [e.constant(0, word)] * digits, begin)

    def pair(number: Index) -> None:
        first = e.mul(number, 2)
        _sort_by_digit(e, all, spare, count, counts, first)
        _sort_by_digit(e, spare, all, count, counts, e.add(first, 1))

    e.loop(0, digits // 2, 1, pair)


def _sort_by_digit(
    e: Emitter, source: Keyed, target: Keyed, count: Index, counts: Words, digit: Index
) -> None:
    """Put each of `source` at the next position of its digit, as `counts` says."""
    word = counts.word
    shift = e.make(arith.IndexCastOp, [e.index(e.mul(digit, 8))], word)
    begin = e.mul(digit, DIGIT_VALUES)

    def put(place: Index) -> None:
        value = _digit(e, word, source.keys.load(e, place), shift)
        source.move(e, place, target, _add_one(e, counts, value, begin))

    e.loop(0, count, 1, put)


def _digit(e: Emitter, word: IntegerType, key: Value, shift: Value) -> Value:
    """Return the digit of a key that is `shift` bits from its end; keys below zero come first."""
    unsigned = e.apply(arith.XOrIOp, key, e.constant(sign_of(word), word))
    shifted = e.apply(arith.ShRUIOp, unsigned, shift)
    digit = e.apply(arith.AndIOp, shifted, e.constant(DIGIT_VALUES - 1, word))
    return e.make(arith.IndexCastOp, [digit], IndexType())


def _add_one(e: Emitter, counts: Words, digit: Index, begin: Index) -> Value:
    """Count a digit, and return how many there were before, as an index."""
    at = e.add(digit, begin)
    found = counts.load(e, at)
    counts.store(e, e.apply(arith.AddiOp, found, e.constant(1, counts.word)), at)
    return e.make(arith.IndexCastOp, [found], IndexType())
