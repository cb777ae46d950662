"""The entry of attention: a block has some queries, and goes over tiles of keys and values.

Scores, their maxima and sums are in registers: T. Dao, "FlashAttention-2: Faster Attention with
Better Parallelism and Work Partitioning", 2023. The fragments of scores have the layout of
fragments of the left operand of `mma.sync`, so weights never leave registers either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import Float32Type, MemRefType
from xdsl.ir import SSAValue

from braid.lowering.gpu.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.contraction.copies import TileCopy
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.problem import Operand
from braid.lowering.gpu.contraction.tensor_cores import STEP_BYTES, TensorCores
from braid.lowering.gpu.contraction.tiles import Place
from braid.lowering.gpu.kernels.attention_tiles.key_ranges import KeyRanges
from braid.lowering.gpu.kernels.attention_tiles.weights import (
    MINUS_INFINITY,
    RunningWeights,
    constant_factor,
    elementwise_scores,
    normalized,
    packed,
)
from braid.lowering.gpu.launch.launches import dynamic_shared

_HELD_DEPTH = 128
"""The most elements of a query whose fragments stay in registers."""
_HALVES = 2
"""Rows of 8 that a thread has elements of, in a block of 16."""


@dataclass(frozen=True)
class Attention:
    """`scores` and `weighted` are the products; their tiles have all columns of a head."""

    scores: Product
    weighted: Product
    stages: int

    @cached_property
    def ranges(self) -> KeyRanges | None:
        """Return the ranges of tiles of keys that blocks go over, if a mask leaves out any."""
        return KeyRanges.of(self.scores)

    @property
    def rows(self) -> int:
        """Queries of a block."""
        return self.scores.tiles.rows

    @property
    def keys(self) -> int:
        """Keys of a tile."""
        return self.scores.tiles.columns

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.scores.tiles.threads

    @property
    def row_tiles(self) -> int:
        """The blocks of queries of a batch."""
        return -(-self.scores.rows // self.rows)

    @property
    def blocks(self) -> int:
        """The blocks of the launch."""
        problem = self.scores.problem
        return problem.count(problem.batches) * self.row_tiles

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        staged = self.rows * self.weighted.tiles.staged_pitch
        return max(self._queries.bytes + self.stages * self._slot_bytes, staged)

    @cached_property
    def factor(self) -> float | None:
        """Return the factor that scores still need, if nothing else happens to them."""
        return constant_factor(self.scores.epilogue)

    def place(self, code: Code) -> tuple[Value, Value]:
        """Return the batch and the first row of a block."""
        block = code.block()
        row = code.mul(code.rem(block, self.row_tiles), self.rows)
        return code.div(block, self.row_tiles), row

    @cached_property
    def _queries(self) -> Place:
        return Place(0, self.rows, self.scores.tiles.depth, True)

    @cached_property
    def _keys(self) -> "_Moving":
        width = self.scores.tiles.depth // 2
        return _Moving(self.scores.problem.b, self._queries.bytes, self.keys, width, True)

    @cached_property
    def _values(self) -> "_Moving":
        start = self._keys.place.start + self._keys.place.bytes
        width = self.weighted.tiles.columns
        return _Moving(self.weighted.problem.b, start, self.keys, width, False)

    @property
    def _slot_bytes(self) -> int:
        return self._keys.place.bytes + self._values.place.bytes

    @cached_property
    def _score_cores(self) -> TensorCores:
        own = self.scores
        by_lines = self._keys.contiguous
        return TensorCores(own.problem, own.tiles, self._queries, self._keys.place, by_lines)

    @cached_property
    def _value_cores(self) -> TensorCores:
        own = self.weighted
        by_lines = not self._values.contiguous
        return TensorCores(own.problem, own.tiles, self._queries, self._values.place, by_lines)

    def emit(
        self,
        code: Code,
        values: Mapping[SSAValue, SSAValue],
        entry: str,
        scratch: Value | None = None,
    ) -> None:
        """Emit the code of a thread; `values` are the entry's values for the arguments of both
        halves.

        `scratch` is where the ranges of keys are, where there are any.
        """
        thread, (batch, row) = code.thread(), self.place(code)
        begin, end = code.number(0), code.number(-(-self.scores.columns // self.keys))
        if self.ranges is not None and scratch is not None:
            begin, end = self.ranges.load(code, scratch, batch, code.div(row, self.rows))
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        queries = self._copy(values, self.scores.problem.a, self._queries, self.rows)
        moving = [
            own.copy(cast(Value, values[own.operand.value]), self.threads)
            for own in (self._keys, self._values)
        ]
        queries.prepare(code, thread, row, batch)
        for copy in moving:
            copy.prepare(code, thread, code.number(0), batch)
        for cores in (self._score_cores, self._value_cores):
            cores.prepare(code, thread)
        queries.issue(code, shared, code.number(0), range(queries.count))
        if self.stages > 1:
            slot = code.mul(code.rem(begin, self.stages), self._slot_bytes)
            self._issue(code, moving, code.at(shared, slot), code.mul(begin, self.keys))
        code.intrinsic("llvm.nvvm.cp.async.commit.group", [], [])
        state = self._loop(code, values, shared, moving, (thread, batch, row), (begin, end))
        running = RunningWeights.of(state, _HALVES)
        sums = normalized(code, running, state[len(running.values) :])
        code.intrinsic("llvm.nvvm.cp.async.wait.all", [], [])
        code.barrier()
        self._value_cores.stage(code, shared, sums)
        code.barrier()
        where = (thread, batch, row, code.number(0))
        product = self.weighted
        product.write_staged(code, shared, product.whole_tile(where, values))

    def _copy(
        self, values: Mapping[SSAValue, SSAValue], operand: Operand, place: Place, lines: int
    ) -> TileCopy:
        own = replace(operand, value=values[operand.value])
        return TileCopy(own, place, True, lines, place.line_bytes // 2, self.threads)

    def _issue(self, code: Code, moving: Sequence[TileCopy], slot: Value, key: Value) -> None:
        for copy in moving:
            copy.issue(code, slot, key, range(copy.count))

    def _loop(
        self,
        code: Code,
        values: Mapping[SSAValue, SSAValue],
        shared: Value,
        moving: Sequence[TileCopy],
        where: tuple[Value, Value, Value],
        tiles: tuple[Value, Value],
    ) -> list[Value]:
        """Emit the loop over tiles of keys, which carries maxima, sums and weighted values of the
        thread's rows.
        """
        begin, end = tiles
        held: list[list[Value]] = []
        if self.stages > 1 and self.scores.depth <= _HELD_DEPTH:
            _wait(code, 0)
            held = [self._score_cores.load_a(code, shared, n) for n in range(self._steps)]

        def turn(own: Code, number: Value, carried: Sequence[Value]) -> Sequence[Value]:
            key = own.mul(number, self.keys)
            read = shared
            if self.stages == 1:
                self._issue(own, moving, shared, key)
            else:
                slot = own.mul(own.rem(number, self.stages), self._slot_bytes)
                other = own.rem(own.add(number, 1), self.stages)
                last = own.insert(arith.SubiOp(end, own.number(1)))
                next = own.insert(arith.MinUIOp(own.add(number, 1), last))
                further = own.mul(next, self.keys)
                target = own.at(shared, own.mul(other, self._slot_bytes))
                self._issue(own, moving, target, further)
                read = own.at(shared, slot)
            own.intrinsic("llvm.nvvm.cp.async.commit.group", [], [])
            _wait(own, self.stages - 1)
            fragments = held or [
                self._score_cores.load_a(own, shared, n) for n in range(self._steps)
            ]
            scores = self._scores(own, read, fragments, values, where, key)
            state = self._weigh(own, read, scores, carried)
            own.barrier()
            return state

        none = RunningWeights.none(code, _HALVES).values
        start = [*none, *[code.number(0, Float32Type())] * self._value_cores.sums]
        return code.loop(begin, end, code.number(1), start, turn)

    @property
    def _steps(self) -> int:
        return self.scores.tiles.depth // STEP_BYTES

    def _scores(
        self,
        code: Code,
        slot: Value,
        queries: Sequence[Sequence[Value]],
        values: Mapping[SSAValue, SSAValue],
        where: tuple[Value, Value, Value],
        key: Value,
    ) -> list[Value]:
        """Return the scores of the warp's rows, after the elementwise ops on them; -∞ beyond the
        last key.
        """
        cores = self._score_cores
        sums = [cores.zero(code)] * cores.sums
        for step, own in enumerate(queries):
            sums = cores.multiply(code, sums, [*own, *cores.load_b(code, slot, step)])
        _, batch, row = where
        product = self.scores
        count = product.columns
        quad, eighth = code.rem(cores.lane, 4), code.div(cores.lane, 4)
        first = code.add(code.add(row, cores.row), eighth)
        scores: list[Value] = []
        for pair in range(len(sums) // 2):
            m = code.least(code.add(first, 8 * (pair % 2)), product.rows - 1)
            n = code.add(code.add(key, code.mul(quad, 2)), 8 * (pair // 2))
            own = sums[2 * pair : 2 * pair + 2]
            lanes = elementwise_scores(code, product, own, (batch, m, n), values)
            for place, lane in enumerate(lanes):
                inside = code.below(code.add(n, place), count)
                least = code.number(MINUS_INFINITY, Float32Type())
                scores.append(lane if count % self.keys == 0 else code.select(inside, lane, least))
        return scores

    def _weigh(
        self, code: Code, slot: Value, scores: Sequence[Value], carried: Sequence[Value]
    ) -> list[Value]:
        """Return the values that are carried on after the keys of these scores."""
        before = RunningWeights.of(carried, _HALVES)
        running, weights, scales = before.after(code, scores, self.factor)
        sums = list(carried[len(before.values) :])
        for n, own in enumerate(sums):
            sums[n] = code.insert(arith.MulfOp(own, scales[n // 2 % _HALVES]))
        return [*running.values, *self._add_values(code, slot, weights, sums)]

    def _add_values(
        self, code: Code, slot: Value, weights: Sequence[Value], sums: list[Value]
    ) -> list[Value]:
        """Return the sums and the weighted values of a tile: 16 keys at a time."""
        cores = self._value_cores
        type = cast(MemRefType[Any], self.weighted.problem.b.value.type).element_type
        for step in range(self.keys // 16):
            own = weights[8 * step : 8 * step + 8]
            a = [packed(code, own[n : n + 2], type) for n in range(0, 8, 2)]
            sums = cores.multiply(code, sums, [*a, *cores.load_b(code, slot, step)])
        return sums


class _Moving:
    """Keys or values, with a tile of so many that moves along them.

    It lies in lines of the head's `width` elements if they are `contiguous`, else along keys.
    """

    def __init__(
        self, operand: Operand, start: int, count: int, width: int, are_keys: bool
    ) -> None:
        # The operand's K is the dim of the loop.
        swapped = replace(operand, lines=operand.depths, depths=operand.lines)
        self.operand = swapped if are_keys else operand
        self.count, self.width = count, width
        self.contiguous = self.operand.chunk(False) >= self.operand.chunk(True)
        lines, line = (count, width) if self.contiguous else (width, count)
        self.place = Place(start, lines, 2 * line, True)

    def copy(self, buffer: Value, threads: int) -> TileCopy:
        """Emit the copy of a tile by the threads."""
        own = replace(self.operand, value=buffer)
        return TileCopy(own, self.place, not self.contiguous, self.width, self.count, threads)


def _wait(code: Code, left: int) -> None:
    code.intrinsic("llvm.nvvm.cp.async.wait.group", [code.number(left)], [])
    code.barrier()
