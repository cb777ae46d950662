"""The k largest or smallest elements of rows: each finds its own place by counting those before it.

Elements are ranked by one integer each, in which value and index are. Long rows are cut into
chunks, of each of which the first k go on: a tournament. What is left is compared with all of it.
Few of a chunk are found one after the other, each the largest of what a warp's lanes still have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

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
from braid.lowering.gpu.kernels.contraction.candidate import ProductEntry, kernel_of_entries
from braid.lowering.gpu.kernels.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.kernels.plain_candidate import AlongDim
from braid.lowering.gpu.kernels.shuffles import XOR, shuffled
from braid.lowering.gpu.launches import THREADS, dynamic_shared
from braid.targets.kernels.kernel_family import Kernel, Schedule
from braid.targets.machines.machine import Machine

_CHUNKS = (THREADS, 2 * THREADS, 4 * THREADS)
"""Elements of a chunk: of small ones more go on, of large ones more is compared."""
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
"""A second, of a whole GPU (measured on an H200)."""


@dataclass(frozen=True)
class TopKFamily:
    """A `braid.top_k` alone, of elements of up to 32 bits, along any dim."""

    machine: Machine
    name: str = "gpu-top-k"
    version: int = 3

    def match(self, group: FusedOp) -> "_TopK | None":
        """One op of static extents, not empty, on an operand of the group."""
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


@dataclass(frozen=True, eq=False)
class _TopK(AlongDim):
    op: TopKOp

    def seconds(self, choice: LayoutChoice) -> float:
        """Of comparisons, and of moving the operand and the results once."""
        compared = _compared(self._counts, self._k if self._k <= _FEW else self._chunk)
        return super().seconds(choice) + self._rows * compared / _COMPARISONS

    @property
    def _k(self) -> int:
        return self.op.k.value.data

    @property
    def _rows(self) -> int:
        return prod(self.outer)

    @cached_property
    def _counts(self) -> list[int]:
        """Elements of a row that are left in each round, and in the end."""
        return self._rounds(self._chunk)

    def _rounds(self, chunk: int) -> list[int]:
        """With chunks of so many: as long as comparing what is left takes longer than a round."""
        counts = [shape_of(self.op.input)[self.dim]]
        while True:
            last, left = counts[-1], -(-counts[-1] // chunk) * self._k
            goes_on = last > THREADS if self._k <= _FEW else last**2 > chunk * last + left**2
            if not goes_on or 2 * self._k > chunk:
                return counts
            counts.append(left)

    @cached_property
    def _chunk(self) -> int:
        if self._k <= _FEW:
            return _WARP_CHUNK
        return min(_CHUNKS, key=lambda chunk: _compared(self._rounds(chunk), chunk))

    def _start(self, round: int) -> int:
        """Where ranks of a round, but the first, begin in the scratch memory."""
        return _RANK * self._rows * sum(self._counts[1:round])

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """An entry a round of chunks, and one that compares all that is left."""
        buffers = self.buffers
        last = len(self._counts) - 1
        few = self._k <= _FEW
        emit = self._emit_few if few else self._emit_round
        entries = [
            ProductEntry(
                -(-self._rows * self._chunks(round) // (THREADS // _WARP if few else 1)),
                THREADS,
                0 if few else _RANK * self._chunk,
                (),
                lambda code, own, name, rest, round=round: emit(
                    code, [own[b] for b in buffers], name, rest[0], round
                ),
            )
            for round in range(last)
        ]
        final = ProductEntry(
            self._rows * -(-self._counts[last] // THREADS),
            THREADS,
            _RANK * THREADS,
            (),
            lambda code, own, name, rest: self._emit_final(
                code, [own[b] for b in buffers], name, rest
            ),
        )
        scratch = self._start(last + 1)
        return kernel_of_entries(
            [*entries, final], buffers, symbol, self.group, self.machine, scratch
        )

    def _chunks(self, round: int) -> int:
        """Of a row in a round."""
        return -(-self._counts[round] // self._chunk)

    def _rank(
        self,
        code: Code,
        buffers: Sequence[SSAValue],
        scratch: Sequence[Value],
        round: int,
        row: Value,
        place: Value,
        missing: Value | int,
    ) -> Value:
        """The rank of an element of a row in a round, or `missing`, above `SMALLEST`, for none."""
        count = self._counts[round]
        inside = code.below(place, count)
        safe = code.least(place, count - 1)
        if round == 0:
            number = code.index(safe)
            value = self._element(code, buffers[0], row, number)
            type, ascending = element_type_of(self.op.input), not self.op.largest.value.data
            rank = rank_of(code.builder, value, type, number, ascending=ascending)
        else:
            line = code.add(code.mul(code.wide(row), count), code.wide(safe))
            start = code.at(scratch[0], self._start(round))
            rank = code.load(code.at(start, code.mul(line, _RANK)), i64, _RANK)
        there = code.insert(arith.AndIOp(inside, self._is_element(code, rank)))
        least = code.number(SMALLEST, i64)
        return code.select(there, rank, code.add(least, missing))

    def _is_element(self, code: Code, rank: Value) -> Value:
        """Whether it is not that of a missing one."""
        least = code.number(SMALLEST + max(_CHUNKS), i64)
        return code.insert(arith.CmpiOp(rank, least, "sge"))

    def _element(self, code: Code, buffer: SSAValue, row: Value, number: SSAValue) -> Value:
        point = delinearized(code.builder, code.index(row), self.outer)
        return code.insert(memref.LoadOp.get(buffer, self._at(point, number)))

    def _at(self, point: Sequence[SSAValue], number: SSAValue) -> list[SSAValue]:
        return [*point[: self.dim], number, *point[self.dim :]]

    def _emit_few(
        self, code: Code, buffers: Sequence[SSAValue], entry: str, scratch: Value, round: int
    ) -> None:
        """The first k of a warp's chunk, in their order; missing ones come last."""
        lane = code.rem(code.thread(), _WARP)
        warps = code.mul(code.block(), THREADS // _WARP)
        warp = code.add(warps, code.div(code.thread(), _WARP))
        chunks = self._chunks(round)

        def select(at: Code) -> None:
            row, chunk = at.div(warp, chunks), at.rem(warp, chunks)
            own: list[Value] = []
            for part in range(_WARP_CHUNK // _WARP):
                inside = at.add(lane, part * _WARP)
                place = at.add(at.mul(chunk, _WARP_CHUNK), inside)
                own.append(self._rank(at, buffers, [scratch], round, row, place, at.wide(inside)))
            line = at.mul(at.wide(row), self._counts[round + 1])
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
        """The first k of a chunk, in their order; missing ones come last."""
        thread, block = code.thread(), code.block()
        chunks = self._chunks(round)
        row, chunk = code.div(block, chunks), code.rem(block, chunks)
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        own: list[Value] = []
        for part in range(self._chunk // THREADS):
            inside = code.add(thread, part * THREADS)
            place = code.add(code.mul(chunk, self._chunk), inside)
            rank = self._rank(code, buffers, [scratch], round, row, place, code.wide(inside))
            code.store(rank, code.at(shared, code.mul(inside, _RANK)), _RANK)
            own.append(rank)
        code.barrier()
        places = _places(code, shared, self._chunk, own, [code.number(0)] * len(own))
        line = code.mul(code.wide(row), self._counts[round + 1])
        first = code.add(line, code.mul(code.wide(chunk), self._k))
        start = code.at(scratch, self._start(round + 1))
        for rank, place in zip(own, places, strict=True):
            target = code.mul(code.add(first, code.wide(place)), _RANK)

            def write(at: Code, rank: Value = rank, target: Value = target) -> None:
                at.store(rank, at.at(start, target), _RANK)

            code.choose(code.below(place, self._k), write)

    def _emit_final(
        self, code: Code, buffers: Sequence[SSAValue], entry: str, scratch: Sequence[Value]
    ) -> None:
        """A thread has an element, which it writes to its place if that is below k."""
        thread, block = code.thread(), code.block()
        last = len(self._counts) - 1
        count = self._counts[last]
        parts = -(-count // THREADS)
        row, part = code.div(block, parts), code.rem(block, parts)
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        slot = code.at(shared, code.mul(thread, _RANK))

        def rank_at(at: Code, place: Value) -> Value:
            return self._rank(at, buffers, scratch, last, row, place, 0)

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


def _compared(counts: Sequence[int], each: int) -> int:
    """Comparisons of a row, of whose elements in a round `each` are compared with every one."""
    return each * sum(counts[:-1]) + counts[-1] ** 2


def _places(
    code: Code, shared: Value, count: int, own: Sequence[Value], before: Sequence[Value]
) -> list[Value]:
    """How many of the ranks in shared memory are above each of a thread's, and `before`."""

    def one(at: Code, number: Value, counted: Sequence[Value]) -> Sequence[Value]:
        rank = at.load(at.at(shared, at.mul(number, _RANK)), i64, _RANK)
        found: list[Value] = []
        for total, mine in zip(counted, own, strict=True):
            above = at.insert(arith.CmpiOp(rank, mine, "sgt"))
            found.append(at.add(total, at.insert(arith.ExtUIOp(above, i32))))
        return found

    begin, end, step = (code.number(n) for n in (0, count, 1))
    return code.loop(begin, end, step, before, one)
