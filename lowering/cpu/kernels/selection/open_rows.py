"""The first elements of a row of any length; their number may be a size.

A block of the row is sorted by digits. An element that comes before the last of the present
candidates is appended to them, and they are sorted again when a block is full.
"""

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i64
from xdsl.ir import Attribute

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.cpu.kernels.selection.candidates import Places
from braid.lowering.cpu.kernels.selection.keys import key_of, sign_of, word_of
from braid.lowering.cpu.kernels.selection.sorting import (
    DIGIT_VALUES,
    Keyed,
    digits_of,
    sort_many,
)
from braid.lowering.cpu.kernels.selection.words import Words
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import maximum, minimum

WORD = i64
"""The type of keys and numbers: a row may have more elements than 32 bits count."""

_LINE = 8
"""Words of a line of the cache."""


_BLOCK = 1024
"""Elements of a block, at least."""

_TIMES = 4
"""The fewest elements of a block, in multiples of those that are selected."""


@dataclass(frozen=True)
class OpenRow:
    """A row of `extent` elements of which the first `k` are selected, and scratch memory for it.

    That is two arrays of keys and numbers, as long as a block, counts of digits, and two words for
    how many candidates there are and for the key that others have to come before.
    """

    element_type: Attribute
    extent: Extent
    k: Extent

    @property
    def bytes(self) -> Extent:
        """Return the bytes of the scratch memory, rounded up to cache lines."""
        return (4 * self._words + self._digits * DIGIT_VALUES + _LINE) * bytes_of(WORD)

    def select(self, e: Emitter, row: Places, scratch: Buffer, *, largest: bool) -> Words:
        """Emit the selection; return the numbers of the first elements in order."""
        step = self._words
        keys, numbers, other_keys, other_numbers, counts = (
            Words(scratch, i * step) for i in range(5)
        )
        state = Words(scratch, 4 * step + self._digits * DIGIT_VALUES)
        all, spare = Keyed(keys, numbers), Keyed(other_keys, other_numbers)

        def sort(count: Index) -> None:
            sort_many(e, all, count, spare, counts, self._digits)
            state.store_index(e, self.k, 0)
            state.store(e, keys.load(e, e.sub(e.maximum(self.k, 1), 1)), 1)

        def put(key: Value, number: Index, place: Index) -> None:
            keys.store(e, key, place)
            numbers.store_index(e, number, place)

        def begin(number: Index) -> None:
            put(self._key(e, row, number, largest), number, number)

        def look(number: Index) -> None:
            key = self._key(e, row, number, largest)
            is_before = e.insert(arith.CmpiOp(key, state.load(e, 1), "slt"))
            e.when(is_before, lambda: collect(key, number))

        def collect(key: Value, number: Index) -> None:
            count = state.load_index(e, 0)
            put(key, number, count)
            more = e.add(count, 1)
            state.store_index(e, more, 0)
            e.when(_is_equal(e, more, self._block), lambda: sort(self._block))

        e.loop(0, self._block, 1, begin)
        sort(self._block)
        e.loop(self._block, self.extent, 1, look)
        count = state.load_index(e, 0)
        are_more = e.insert(arith.CmpiOp(count, e.index(self.k), "ne"))
        e.when(are_more, lambda: sort(count))
        return numbers

    @property
    def _block(self) -> Extent:
        return minimum(self.extent, maximum(_BLOCK, _TIMES * self.k))

    @property
    def _words(self) -> Extent:
        return self._block + _LINE - self._block % _LINE

    @property
    def _own(self) -> IntegerType:
        return word_of(self.element_type)

    @property
    def _digits(self) -> int:
        return digits_of(self._own)

    def _key(self, e: Emitter, row: Places, number: Index, largest: bool) -> Value:
        """Return the key of an element, whose last digits order as integers without a sign."""
        source, (first, step) = row
        value = source.load_scalar(e, e.add(first, e.mul(number, step)))
        key = key_of(e, value, self.element_type, largest=largest)
        if self._own == WORD:
            return key  # the sort flips the sign bit of a whole word
        biased = e.apply(arith.XOrIOp, key, e.constant(sign_of(self._own), self._own))
        return e.make(arith.ExtUIOp, [biased], WORD)


def _is_equal(e: Emitter, a: Index, b: Index) -> Value:
    return e.insert(arith.CmpiOp(e.index(a), e.index(b), "eq"))
