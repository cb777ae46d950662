"""The first elements of one row: those that may be among them are collected and sorted."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, VectorType, i64
from xdsl.ir import Attribute

from braid.lowering.common.emitted_dialects import memref, vector
from braid.lowering.cpu.kernels.selection.keys import key_of
from braid.lowering.cpu.kernels.selection.sorting import (
    DIGIT_VALUES,
    Keyed,
    digits_of,
    iota,
    sort_few,
    sort_many,
)
from braid.lowering.cpu.kernels.selection.words import Words
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.compare import compare
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.rows import each
from braid.support.sizes.expression import Extent

_FEW = 64
"""Candidates up to which counting those before each takes less time than digits."""

_AT_ONCE = 4
"""The most elements sorted at once by digits, in multiples of those collected otherwise."""

_DIGITS_MEASURED = 4
"""Digits of the keys that sorts were measured with."""

_GROUP = 4
"""Vectors that are looked at together."""


@dataclass(frozen=True)
class SelectionScratch:
    """Scratch memory for the first `k` of `extent` elements: arrays of `word`, each whole vectors.

    `has_row` says that the keys of the whole row are kept, since its elements are not contiguous.
    """

    word: IntegerType
    lanes: int
    extent: int
    k: int
    has_row: bool

    @property
    def collected(self) -> int:
        """Candidates that are sorted next, at least: twice as many as will be left.

        All of them at once, where they would be sorted a second and a third time for few more.
        """
        count = -(-max(_FEW, 2 * self.k) // self.lanes) * self.lanes
        most = count if count <= _FEW else _AT_ONCE * count
        return self.extent if self.extent <= most else count

    @property
    def are_few(self) -> bool:
        """Return whether candidates are sorted by counting."""
        return self.collected <= _FEW

    @property
    def sort_cycles(self) -> float:
        """Cycles of a sort, as measured on Zen 5."""
        n = self.collected
        if self.are_few:
            return n * (-(-n // self.lanes) * 1.5 + 3)
        return (3000 + 25 * n) * digits_of(self.word) / _DIGITS_MEASURED

    @property
    def words(self) -> int:
        """Words of all arrays, rounded up to cache lines."""
        return -(-self._begins[-1] // 16) * 16

    def arrays(self, scratch: Buffer) -> tuple[Keyed, Keyed, Words, Words, Words]:
        """Return the bytes of candidates and as many more for sorting, of the count, the last key,
        and the row.
        """
        *arrays, state, row = (Words(scratch, begin) for begin in self._begins[:-1])
        return Keyed(arrays[0], arrays[1]), Keyed(arrays[2], arrays[3]), arrays[4], state, row

    @cached_property
    def _begins(self) -> list[int]:
        # Before they are sorted, candidates are followed by a group, and the last ones by another.
        each = self.collected + 2 * _GROUP * self.lanes
        counts = self.lanes if self.are_few else digits_of(self.word) * DIGIT_VALUES
        row = self.extent + self.lanes if self.has_row else 0
        begins = [0]
        for words in (each, each, each, each, counts, 2, row):
            begins.append(begins[-1] + -(-words // self.lanes) * self.lanes)
        return begins


@dataclass(frozen=True)
class Selection:
    """The selection from one row, whose first element and step in `source` are `row`."""

    e: Emitter
    layout: SelectionScratch
    element_type: Attribute
    largest: bool
    source: Buffer
    scratch: Buffer
    row: tuple[Index, Index]

    def emit(self) -> None:
        """Leave the first k keys and their numbers in order.

        The remainder after whole groups is always sorted.
        """
        e, extent, collected = self.e, self.layout.extent, self.layout.collected
        if self.layout.has_row:
            e.loop(0, extent, 1, self._keep_key)
        each(e, collected, lambda i, mask: self._take(i, i, mask))
        size = _GROUP * e.lanes
        whole = extent - (extent - collected) % size
        count: Index = collected
        if whole > collected:
            self._state.store_index(e, collected, 0)
            e.loop(collected, whole, size, self._look)
            count = self._state.load_index(e, 0)
        rest = extent - whole
        for i in range(0, rest, e.lanes):
            self._take(whole + i, e.add(count, i), e.tail_mask(rest - i))
        self._sort(e.add(count, rest))

    def write(self, buffer: Buffer, at: tuple[Index, Index], *, are_values: bool) -> None:
        """Write the first k elements, or their numbers as i64, from a place on by a step."""
        row = (self.source, self.row) if are_values else None
        write_selected(self.e, self._candidates.numbers, self.layout.k, row, (buffer, at))

    @cached_property
    def _arrays(self) -> tuple[Keyed, Keyed, Words, Words, Words]:
        return self.layout.arrays(self.scratch)

    @property
    def _candidates(self) -> Keyed:
        return self._arrays[0]

    @property
    def _state(self) -> Words:
        return self._arrays[3]

    def _at(self, number: Index) -> Index:
        return self.e.add(self.row[0], self.e.mul(number, self.row[1]))

    def _keep_key(self, number: Index) -> None:
        value = self.source.load_scalar(self.e, self._at(number))
        key = key_of(self.e, value, self.element_type, largest=self.largest)
        self._arrays[4].store(self.e, key, number)

    def _keys(self, position: Index, mask: Value | None = None) -> Value:
        """Return the keys of the vector from `position` on."""
        if self.layout.has_row:
            return self._arrays[4].load_vector(self.e, position)
        values = self.source.load(self.e, self._at(position), mask)
        return key_of(self.e, values, self.element_type, largest=self.largest)

    def _take(self, position: Index, place: Index, mask: Value | None) -> None:
        """Make a vector of the row candidates from `place` on, and whatever is after it."""
        e, candidates = self.e, self._candidates
        candidates.keys.store_vector(e, self._keys(position, mask), place)
        first = e.broadcast(e.make(arith.IndexCastOp, [e.index(position)], self.layout.word))
        candidates.numbers.store_vector(
            e, e.apply(arith.AddiOp, first, iota(e, self.layout.word)), place
        )

    def _look(self, position: Index) -> None:
        """Collect what comes before the last of the first k so far, from a group of vectors."""
        e, k = self.e, self.layout.k
        count = self._state.load_index(e, 0)

        def sort() -> None:
            self._sort(count)
            self._state.store_index(e, k, 0)
            self._state.store(e, self._candidates.keys.load(e, k - 1), 1)

        e.when(e.insert(arith.CmpiOp(count, e.index(self.layout.collected), "uge")), sort)
        last = self._state.load(e, 1)
        places = [e.add(position, i * e.lanes) for i in range(_GROUP)]
        keys = [self._keys(place) for place in places]
        found = [compare(e, "slt", key, e.broadcast(last)) for key in keys]
        either = found[0]
        for other in found[1:]:
            either = e.apply(arith.OrIOp, either, other)

        def collect() -> None:
            for place, key, hit in zip(places, keys, found, strict=True):
                e.when(
                    _is_any(e, hit),
                    lambda place=place, key=key: self._collect(place, key, last),
                )

        e.when(_is_any(e, either), collect)

    def _collect(self, position: Index, keys: Value, last: Value) -> None:
        """Add those of a vector that come before the key `last`."""
        e, (candidates, spare, *_) = self.e, self._arrays
        spare.keys.store_vector(e, keys, 0)

        def put(lane: Index, count: Sequence[Value]) -> Sequence[Value]:
            key = spare.keys.load(e, lane)
            candidates.keys.store(e, key, count[0])
            candidates.numbers.store_index(e, e.add(position, lane), count[0])
            is_before = e.insert(arith.CmpiOp(key, last, "slt"))
            minus_one = e.make(arith.IndexCastOp, [is_before], IndexType())
            return [e.apply(arith.SubiOp, count[0], minus_one)]

        (count,) = e.carry(0, e.lanes, 1, [self._state.load_index(e, 0)], put)
        self._state.store_index(e, count, 0)

    def _sort(self, count: Index) -> None:
        """Bring the first k of `count` candidates to the front, in order."""
        candidates, spare, places, *_ = self._arrays
        if self.layout.are_few:
            sort_few(self.e, candidates, count, self.layout.k, spare, places)
        else:
            sort_many(self.e, candidates, count, spare, places)


Places = tuple[Buffer, tuple[Index, Index]]
"""Elements of a buffer: the first one, and how far they are apart."""


def write_selected(e: Emitter, found: Words, k: Extent, row: Places | None, target: Places) -> None:
    """Write the elements of a row whose numbers are `found` first, or their numbers as i64."""
    buffer, (first, step) = target

    def put(place: Index) -> None:
        number = found.load_index(e, place)
        if row is None:
            value = e.make(arith.IndexCastOp, [number], i64)
        else:
            source, (begin, apart) = row
            value = source.load_scalar(e, e.add(begin, e.mul(number, apart)))
        at = e.add(first, e.mul(place, step))
        e.effect(memref.StoreOp.get(value, buffer.ref, [e.index(at)]))

    e.loop(0, k, 1, put)


def _is_any(e: Emitter, mask: Value) -> Value:
    """Return whether a lane is on."""
    bits = IntegerType(e.lanes)
    whole = e.make(vector.BitcastOp, [mask], VectorType(bits, [1]))
    number = e.insert(vector.ExtractOp(whole, [0], bits))
    return e.insert(arith.CmpiOp(number, e.constant(0, bits), "ne"))
