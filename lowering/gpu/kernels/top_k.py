"""The k largest or smallest elements of rows: each finds its own place by counting those before it.

Elements are ranked by one integer each, in which value and index are. Long rows are cut into
chunks, of each of which the first k go on: a tournament. The remainder is compared with all of it.
Few of a chunk are found one after the other, each the largest of what a warp's lanes still have,
and more by their digits, by a block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import cast

from xdsl.dialects import arith, llvm, memref
from xdsl.dialects.builtin import IndexType, i1, i32, i64
from xdsl.ir import SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.common.tensor_loops import delinearized
from braid.lowering.common.top_k import SMALLEST, can_rank, index_of, rank_of
from braid.lowering.gpu.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.kernels.contraction_candidate import ProductEntry, kernel_of_entries
from braid.lowering.gpu.kernels.plain_candidate import AlongDim
from braid.lowering.gpu.kernels.radix_select import Digits, Selection
from braid.lowering.gpu.launch.launches import THREADS, dynamic_shared
from braid.lowering.gpu.nests.shuffles import XOR, shuffled
from braid.targets.kernels.kernel_family import Kernel, KernelFamily
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine

_PARTS = (4, 8, 16)
"""Elements of a chunk that a thread has at most: of small chunks more go on, of large ones there
are fewer blocks."""
_WARP = 32
_FEW = 16
"""The largest k for which a warp has a chunk of its own."""
_WARP_CHUNK = 16 * _WARP
"""Elements of such a chunk."""
_RANK = 8
"""Bytes of a rank."""
_MOST = 1 << 31
"""Elements of a row: indices are in the low bits of ranks, reversed."""
_COMPARISONS = 6.5e12
"""Elements per second of a whole GPU (measured on an H200)."""
_LEFT = 0.8
"""The largest fraction of the elements that goes on from a round: each round is an entry, and they
are to be few."""
_LAUNCH = 2.5e-6
"""Seconds from the end of an entry until the next one has read what it needs."""
_COMPARISON = 4e-9
"""Seconds of one, with which those of a thread follow each other."""
_SELECTION = 2e-6
"""Seconds of a block that selects by digits, and is alone."""
_BLOCKS = 9e7
"""The blocks a second of a whole GPU, without reading elements: histograms of four passes."""
_ELEMENTS = 3.5e11
"""Elements a second that a whole GPU takes from memory, ranks and counts."""


@dataclass(frozen=True)
class TopKFamily(KernelFamily):
    """A `braid.top_k` alone, of elements of up to 32 bits, along any dim."""

    machine: Machine
    name: str = "gpu-top-k"
    version: int = 4

    def match(self, group: FusedOp) -> "_TopK | None":
        """Match one op of static extents, not empty, on an operand of the group."""
        *members, end = group.body.block.ops
        if len(members) != 1 or not isinstance(op := members[0], TopKOp):
            return None
        shapes = [shape_of(value) for value in (op.input, op.values)]
        if any(DYNAMIC in shape or 0 in shape for shape in shapes):
            return None
        type, extent = element_type_of(op.input), shape_of(op.input)[op.dim.value.data]
        if type == i1 or not can_rank(type, extent) or prod(shapes[0]) >= _MOST:
            return None
        return _TopK(group, self.machine, op) if list(end.operands) == list(op.results) else None


@dataclass(frozen=True, order=True)
class _Round:
    """Chunks of `size` of the `count` elements of a row, except for the last one; `left` of each
    continue."""

    count: int
    size: int
    left: int

    @property
    def chunks(self) -> int:
        """Chunks of a row."""
        return -(-self.count // self.size)

    @property
    def last(self) -> int:
        """Elements of the last chunk."""
        return self.count - (self.chunks - 1) * self.size


_Plan = tuple[float, tuple[_Round, ...]]
"""Predicted seconds, and rounds."""


@dataclass(frozen=True, eq=False)
class _TopK(AlongDim):
    op: TopKOp

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of moving the operand and the results once, and of the rounds."""
        return super().seconds(choice) + self._plan[0]

    @property
    def _k(self) -> int:
        return self.op.k.value.data

    @property
    def _few(self) -> bool:
        return self._k <= _FEW

    @property
    def _rows(self) -> int:
        return prod(self.outer)

    @property
    def _extent(self) -> int:
        return shape_of(self.op.input)[self.dim]

    @cached_property
    def _rounds(self) -> Sequence["_Round"]:
        """Return the rounds of chunks."""
        return self._plan[1]

    @cached_property
    def _plan(self) -> _Plan:
        """Seconds and rounds."""
        if not self._few:
            return self._selecting(self._extent, {})
        rounds: list[_Round] = []
        count = self._extent
        while count > max(THREADS, 2 * self._k):
            rounds.append(_Round(count, _WARP_CHUNK, -(-count // _WARP_CHUNK) * self._k))
            count = rounds[-1].left
        compared = self._k * sum(own.count for own in rounds)
        seconds = self._rows * compared / _COMPARISONS + _LAUNCH * len(rounds)
        return seconds + self._comparing(count), tuple(rounds)

    def _comparing(self, count: int) -> float:
        """Return the seconds in which this many elements of each row are compared with each
        other.
        """
        return _LAUNCH + count * _COMPARISON + self._rows * count**2 / _COMPARISONS

    def _selecting(self, count: int, known: dict[int, _Plan]) -> _Plan:
        """Return the fastest rounds, by digits, for this many elements of each row.

        `known` are those of other counts, which rounds of several sizes come to.
        """
        if count in known:
            return known[count]
        best: _Plan = (self._comparing(count), ())
        for parts in _PARTS:
            chunks = -(-count // (parts * THREADS))
            size = -(-count // chunks)
            chunks = -(-count // size)
            left = (chunks - 1) * self._k + min(self._k, count - (chunks - 1) * size)
            own = _LAUNCH + _SELECTION + self._rows * (chunks / _BLOCKS + count / _ELEMENTS)
            if own < best[0] and left <= _LEFT * count:
                seconds, rounds = self._selecting(left, known)
                best = min(best, (own + seconds, (_Round(count, size, left), *rounds)))
        known[count] = best
        return best

    def _start(self, round: int) -> int:
        """Return where ranks of a round, but the first, begin in the scratch memory."""
        return _RANK * self._rows * sum(own.left for own in self._rounds[: round - 1])

    def _count(self, round: int) -> int:
        """Return the elements of a row in a round, or in the end."""
        return self._rounds[round - 1].left if round else self._extent

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Return an entry a round of chunks, and one that compares all that is left."""
        buffers = self.buffers
        emit = self._emit_few if self._few else self._emit_round
        entries = [
            ProductEntry(
                -(-self._rows * own.chunks // (THREADS // _WARP if self._few else 1)),
                THREADS,
                0 if self._few else self._digits.shared_bytes,
                (),
                lambda code, own, name, rest, round=round: emit(
                    code, [own[b] for b in buffers], name, rest[0], round
                ),
            )
            for round, own in enumerate(self._rounds)
        ]
        last = len(entries)
        final = ProductEntry(
            self._rows * -(-self._count(last) // THREADS),
            THREADS,
            _RANK * THREADS,
            (),
            lambda code, own, name, rest: self._emit_final(
                code, [own[b] for b in buffers], name, rest
            ),
        )
        return kernel_of_entries(
            [*entries, final],
            buffers,
            symbol,
            self.group,
            self.machine,
            self._start(last + 1),
        )

    @cached_property
    def _digits(self) -> Digits:
        return Digits.of(element_type_of(self.op.input), self._extent)

    def _or_missing(self, code: Code, rank: Value, inside: Value, missing: Value | int) -> Value:
        """Return a rank, or `missing`, above `SMALLEST`, where none is `inside`."""
        there = code.insert(arith.AndIOp(inside, self._is_element(code, rank)))
        return code.select(there, rank, code.add(code.number(SMALLEST, i64), missing))

    def _rank(
        self,
        code: Code,
        buffers: Sequence[SSAValue],
        scratch: Sequence[Value],
        round: int,
        row: Value,
        place: Value,
    ) -> Value:
        """Return the rank of an element of a row in a round."""
        if round == 0:
            number = code.index(place)
            value = self._element(code, buffers[0], row, number)
            type, ascending = element_type_of(self.op.input), not self.op.largest.value.data
            return cast(Value, rank_of(code.builder, value, type, number, ascending=ascending))
        line = code.add(code.mul(code.wide(row), self._count(round)), code.wide(place))
        start = code.at(scratch[0], self._start(round))
        return code.load(code.at(start, code.mul(line, _RANK)), i64, _RANK)

    def _is_element(self, code: Code, rank: Value) -> Value:
        """Return whether it differs from the key of a missing element."""
        least = code.number(SMALLEST + _WARP_CHUNK, i64)
        return code.insert(arith.CmpiOp(rank, least, "sge"))

    def _element(self, code: Code, buffer: SSAValue, row: Value, number: SSAValue) -> Value:
        point = delinearized(code.builder, code.index(row), self.outer)
        return code.insert(memref.LoadOp.get(buffer, self._at(point, number)))

    def _at(self, point: Sequence[SSAValue], number: SSAValue) -> list[SSAValue]:
        return [*point[: self.dim], number, *point[self.dim :]]

    def _emit_few(
        self, code: Code, buffers: Sequence[SSAValue], entry: str, scratch: Value, round: int
    ) -> None:
        """Emit the selection of the first k of a warp's chunk, in order; missing ones come last."""
        lane = code.rem(code.thread(), _WARP)
        warps = code.mul(code.block(), THREADS // _WARP)
        warp = code.add(warps, code.div(code.thread(), _WARP))
        chunks, count = self._rounds[round].chunks, self._rounds[round].count

        def select(at: Code) -> None:
            row, chunk = at.div(warp, chunks), at.rem(warp, chunks)
            own: list[Value] = []
            for part in range(_WARP_CHUNK // _WARP):
                inside = at.add(lane, part * _WARP)
                place = at.add(at.mul(chunk, _WARP_CHUNK), inside)
                known = at.least(place, count - 1)
                rank = self._rank(at, buffers, [scratch], round, row, known)
                own.append(self._or_missing(at, rank, at.below(place, count), at.wide(inside)))
            line = at.mul(at.wide(row), self._rounds[round].left)
            first = at.add(line, at.mul(at.wide(chunk), self._k))
            start = at.at(scratch, self._start(round + 1))

            def next_one(inner: Code, number: Value, left: Sequence[Value]) -> Sequence[Value]:
                best = left[0]
                for rank in left[1:]:
                    best = inner.insert(arith.MaxSIOp(best, rank))
                for distance in (16, 8, 4, 2, 1):
                    other = shuffled(inner.builder, best, distance, _WARP, XOR)
                    best = inner.insert(arith.MaxSIOp(best, other))
                target = inner.mul(inner.add(first, inner.wide(number)), _RANK)
                leads = inner.below(lane, 1)
                inner.choose(leads, lambda own: own.store(best, own.at(start, target), _RANK))
                least = inner.number(SMALLEST, i64)
                return [
                    inner.select(inner.insert(arith.CmpiOp(rank, best, "eq")), least, rank)
                    for rank in left
                ]

            at.loop(at.number(0), at.number(self._k), at.number(1), own, next_one)

        code.choose(code.below(warp, self._rows * chunks), select)

    def _emit_round(
        self, code: Code, buffers: Sequence[SSAValue], entry: str, scratch: Value, round: int
    ) -> None:
        """Emit the selection of the first k of a chunk, or of all of it, in any order."""
        thread, block = code.thread(), code.block()
        own = self._rounds[round]
        row, chunk = code.div(block, own.chunks), code.rem(block, own.chunks)
        begin = code.mul(chunk, own.size)
        is_last = code.equal(chunk, own.chunks - 1)
        size = code.select(is_last, code.number(own.last), code.number(own.size))
        ranks: list[Value] = []
        inside: list[Value] = []
        for part in range(-(-own.size // THREADS)):
            place = code.add(thread, part * THREADS)
            inside.append(code.below(place, size))
            known = code.least(code.add(begin, place), own.count - 1)
            ranks.append(self._rank(code, buffers, [scratch], round, row, known))
        words = [self._digits.word(code, rank) for rank in ranks]
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        selection = Selection(shared, thread, THREADS, self._digits, words, inside)
        limit = selection.first(code, code.number(self._k), size)
        line = code.mul(code.wide(row), own.left)
        first = code.add(line, code.mul(code.wide(chunk), self._k))
        start = code.at(scratch, self._start(round + 1))

        def put(at: Code, part: int, place: Value) -> None:
            target = at.mul(at.add(first, at.wide(place)), _RANK)
            at.store(ranks[part], at.at(start, target), _RANK)

        selection.write(code, limit, put)

    def _emit_final(
        self, code: Code, buffers: Sequence[SSAValue], entry: str, scratch: Sequence[Value]
    ) -> None:
        """Emit the code of a thread, which writes its element to its place if that is below k."""
        thread, block = code.thread(), code.block()
        last = len(self._rounds)
        count = self._count(last)
        parts = -(-count // THREADS)
        row, part = code.div(block, parts), code.rem(block, parts)
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        slot = code.at(shared, code.mul(thread, _RANK))

        def rank_at(at: Code, place: Value) -> Value:
            known = at.least(place, count - 1)
            rank = self._rank(at, buffers, scratch, last, row, known)
            return self._or_missing(at, rank, at.below(place, count), 0)

        own = rank_at(code, code.add(code.mul(part, THREADS), thread))

        def tile(at: Code, first: Value, counted: Sequence[Value]) -> Sequence[Value]:
            at.store(rank_at(at, at.add(first, thread)), slot, _RANK)
            at.barrier()
            counted = _places(at, shared, min(THREADS, count), [own], counted)
            at.barrier()
            return counted

        begin, end, step = (code.number(n) for n in (0, parts * THREADS, THREADS))
        (place,) = code.loop(begin, end, step, [code.number(0)], tile)
        wanted = code.insert(arith.AndIOp(code.below(place, self._k), self._is_element(code, own)))

        def write(at: Code) -> None:
            index = index_of(at.builder, own)
            number = at.insert(arith.IndexCastOp(index, IndexType()))
            value = self._element(at, buffers[0], row, number)
            point = delinearized(at.builder, at.index(row), self.outer)
            target = self._at(point, at.index(place))
            for result, buffer in zip((value, index), buffers[1:], strict=True):
                at.builder.insert(memref.StoreOp.get(result, buffer, target))

        code.choose(wanted, write)


def _places(
    code: Code, shared: Value, count: int, own: Sequence[Value], before: Sequence[Value]
) -> list[Value]:
    """Return how many of the ranks in shared memory are above each of a thread's, and `before`."""

    def one(at: Code, number: Value, counted: Sequence[Value]) -> Sequence[Value]:
        rank = at.load(at.at(shared, at.mul(number, _RANK)), i64, _RANK)
        found: list[Value] = []
        for total, mine in zip(counted, own, strict=True):
            above = at.insert(arith.CmpiOp(rank, mine, "sgt"))
            found.append(at.add(total, at.insert(arith.ExtUIOp(above, i32))))
        return found

    begin, end, step = (code.number(n) for n in (0, count, 1))
    return code.loop(begin, end, step, before, one)
