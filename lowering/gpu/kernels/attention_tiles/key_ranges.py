"""The tiles of keys that some queries of a block see: an entry before that of attention finds them.

Causal masks, windows and lengths of sequences leave out the first and the last keys. The entry
reads the mask once for all heads that share it, and attention goes over the tiles between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from braid.lowering.gpu.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.contraction.epilogue import merge_points, point_of
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.problem import Part
from braid.lowering.gpu.kernels.attention_tiles.masked_scores import MaskedScores
from braid.lowering.gpu.launch.launches import THREADS, dynamic_shared

_WARP = 32
_ROWS_AT_ONCE = 8
_PAIR = 8
"""Bytes of a first tile, and the one after the last."""


@dataclass(frozen=True)
class KeyRanges:
    """A pair of tile numbers for each tile of rows, for batches whose masks differ."""

    scores: Product
    masked: MaskedScores

    @staticmethod
    def of(scores: Product) -> "KeyRanges | None":
        """Return the ranges; None where nothing is left out, or too few tiles are there to leave
        out any.
        """
        if scores.columns <= 2 * scores.tiles.columns or len(scores.epilogue.results) != 1:
            return None
        masked = MaskedScores.of(scores.epilogue)
        return None if masked is None else KeyRanges(scores, masked)

    @property
    def blocks(self) -> int:
        """Blocks of the entry: one for each pair."""
        return prod(part.extent for part in self._batches) * self._row_tiles

    @property
    def bytes(self) -> int:
        """Bytes of all pairs."""
        return _PAIR * self.blocks

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block of the entry: a pair a warp."""
        return _PAIR * (THREADS // _WARP)

    @property
    def read_bytes(self) -> int:
        """Bytes of the mask that a block reads at once, if it has 16 bits."""
        return 2 * self._rows * self.scores.columns

    @property
    def _row_tiles(self) -> int:
        return -(-self.scores.rows // self.scores.tiles.rows)

    @cached_property
    def _rows(self) -> int:
        """Rows of a tile, or 1 if all have the same mask."""
        dims = {part.dim for part in self.scores.problem.rows}
        return 1 if dims.isdisjoint(self.masked.dims) else self.scores.tiles.rows

    @cached_property
    def _batches(self) -> tuple[Part, ...]:
        """Return the batch dims along which masks differ."""
        dims = self.masked.dims
        return tuple(part for part in self.scores.problem.batches if part.dim in dims)

    def load(self, code: Code, scratch: Value, batch: Value, row_tile: Value) -> list[Value]:
        """Return the pair of a tile of rows of a batch."""
        batches = self.scores.problem.batches
        number, size = code.number(0), prod(part.extent for part in batches)
        for part in batches:
            size //= part.extent
            if part in self._batches:
                own = code.rem(code.div(batch, size), part.extent)
                number = code.add(code.mul(number, part.extent), own)
        place = code.mul(code.add(code.mul(number, self._row_tiles), row_tile), _PAIR)
        pair = code.at(scratch, code.wide(place))
        return [code.load(code.at(pair, 4 * n), i32, 4) for n in range(2)]

    def emit(
        self, code: Code, values: Mapping[SSAValue, SSAValue], entry: str, scratch: Value
    ) -> None:
        """Emit the code of a thread of the entry; with n threads, it takes every n-th key."""
        thread, block = code.thread(), code.block()
        batch = point_of(code, self._batches, code.div(block, self._row_tiles))
        row = code.mul(code.rem(block, self._row_tiles), self.scores.tiles.rows)
        problem, count = self.scores.problem, self.scores.columns

        def is_seen(at: Code, m: Value, n: Value) -> Value:
            row = point_of(at, problem.rows, at.least(m, self.scores.rows - 1))
            point = merge_points(at, batch, row, point_of(at, problem.columns, n))
            return at.xor(self.masked.left_out(at, point, values), 1)

        def key(at: Code, n: Value, pair: Sequence[Value]) -> Sequence[Value]:
            def rows(inner: Code, m: Value, seen: Sequence[Value]) -> Sequence[Value]:
                found = seen[0]
                for place in range(min(_ROWS_AT_ONCE, self._rows)):
                    one = is_seen(inner, inner.add(m, place), n)
                    found = inner.insert(arith.OrIOp(found, one))
                return [found]

            never = at.insert(arith.CmpiOp(n, n, "ne"))
            end_row = at.add(row, self._rows)
            (seen,) = at.loop(row, end_row, at.number(_ROWS_AT_ONCE), [never], rows)
            first, end = pair
            return [
                at.insert(arith.MinUIOp(first, at.select(seen, n, first))),
                at.select(seen, at.add(n, 1), end),
            ]

        start = [code.number(count), code.number(0)]
        pair = code.loop(thread, code.number(count), code.number(THREADS), start, key)
        self._store(code, self._of_block(code, thread, pair, entry), thread, block, scratch)

    def _of_block(
        self, code: Code, thread: Value, pair: Sequence[Value], entry: str
    ) -> Sequence[Value]:
        """Return the first key and the end of the keys that any thread has seen."""
        pair = _across_warp(code, pair)
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        slot = code.at(shared, code.mul(code.div(thread, _WARP), _PAIR))

        def leave(at: Code) -> None:
            for number, value in enumerate(pair):
                at.store(value, at.at(slot, 4 * number), 4)

        leads = code.equal(code.rem(thread, _WARP), 0)
        code.choose(leads, leave)
        code.barrier()
        for warp in range(THREADS // _WARP):
            place = code.at(shared, _PAIR * warp)
            pair = _joined(code, pair, [code.load(code.at(place, 4 * n), i32, 4) for n in (0, 1)])
        return pair

    def _store(
        self, code: Code, pair: Sequence[Value], thread: Value, block: Value, scratch: Value
    ) -> None:
        """Store ranges in tiles; they are empty if no key is seen."""
        keys = self.scores.tiles.columns
        end = code.div(code.add(pair[1], keys - 1), keys)
        first = code.insert(arith.MinUIOp(code.div(pair[0], keys), end))

        def write(at: Code) -> None:
            place = at.at(scratch, at.wide(at.mul(block, _PAIR)))
            for number, value in enumerate((first, end)):
                at.store(value, at.at(place, 4 * number), 4)

        code.choose(code.equal(thread, 0), write)


def _joined(code: Code, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    first = code.insert(arith.MinUIOp(a[0], b[0]))
    return [first, code.insert(arith.MaxUIOp(a[1], b[1]))]


def _across_warp(code: Code, pair: Sequence[Value]) -> Sequence[Value]:
    for distance in (16, 8, 4, 2, 1):
        other: list[Value] = []
        for value in pair:
            operands = [code.number(-1), value, code.number(distance), code.number(31)]
            other += code.intrinsic("llvm.nvvm.shfl.sync.bfly.i32", operands, [i32])
        pair = _joined(code, pair, other)
    return pair
