"""The entry of attention on sm_90a: a thread that copies, and groups of 128 with 64 queries each.

Scores of the next tile of keys, and the values of this one, are multiplied while weights are
computed: J. Shah et al., "FlashAttention-3: Fast and Accurate Attention with Asynchrony and
Low-precision", 2024, algorithm 2. Weights never leave registers: where `wgmma` leaves sums is where
it takes fragments of its left operand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith, llvm, memref, vector
from xdsl.dialects.builtin import Float32Type, MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from braid.lowering.gpu.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.kernels.attention_tiles.kernel import Attention
from braid.lowering.gpu.kernels.attention_tiles.single_rows import emit_single_rows
from braid.lowering.gpu.kernels.attention_tiles.weights import (
    RunningWeights,
    elementwise_scores,
    normalized,
    packed,
)
from braid.lowering.gpu.kernels.hopper.attention_ring import AttentionBoxes, AttentionRing
from braid.lowering.gpu.kernels.hopper.attention_tiles import AttentionTiles
from braid.lowering.gpu.kernels.hopper.instructions import (
    WARPGROUP,
    arrive,
    begin_products,
    end_products,
    set_registers,
    wait,
    wait_for_products,
)
from braid.lowering.gpu.kernels.hopper.order import Order, Tile
from braid.lowering.gpu.kernels.hopper.results import Results, result_boxes
from braid.lowering.gpu.kernels.hopper.roles import emit_roles
from braid.lowering.gpu.kernels.hopper.tiles import STORE_ROWS
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.launch.launches import TensorMap, dynamic_shared

_COPYING_REGISTERS = {1: 40, 2: 24, 3: 32}
_MULTIPLYING_REGISTERS = {1: 240, 2: 240, 3: 160}
"""The registers of a multiplying thread, by groups; with those of the copying ones they fill the
register file."""
_LOADS = (memref.LoadOp, vector.LoadOp)
_ROWS = 2
"""The rows of which a thread has scores."""


@dataclass(frozen=True)
class HopperAttention:
    """Attention by copies of tensors and `wgmma`; `plain` is the same by `mma.sync`."""

    plain: Attention
    tiles: AttentionTiles
    boxes: AttentionBoxes
    results: Results
    most_blocks: int

    @staticmethod
    def of(plain: Attention, tiles: AttentionTiles, most_blocks: int) -> "HopperAttention":
        """Return the kernel of an attention whose operands have tensor maps."""
        weighted = plain.weighted
        boxes = AttentionBoxes.of(plain.scores.problem, weighted.problem)
        assert boxes is not None, "layouts that tensor maps can read"
        stored = result_boxes(weighted.problem, weighted.epilogue, tiles.columns)
        results = Results(weighted.problem, weighted.epilogue, tiles, stored)
        return HopperAttention(plain, tiles, boxes, results, most_blocks)

    @property
    def order(self) -> Order:
        """Order of tiles of queries."""
        problem = self.plain.scores.problem
        batches = problem.count(problem.batches)
        rows = self.tiles.rows
        return Order(batches, self.plain.row_tiles, 1, rows, self.tiles.columns, self.most_blocks)

    def tensor_maps(self, buffers: Sequence[SSAValue]) -> tuple[TensorMap, ...]:
        """Return the tensor maps of queries, keys, values, and of the result where it has one, in
        the entry's order.
        """
        boxes, scores, weighted = self.boxes, self.plain.scores, self.plain.weighted
        lines = self.tiles.keys if boxes.keys_by_elements else self.tiles.key_width
        found = [
            (scores.problem.a.value, boxes.queries, self.tiles.rows),
            (scores.problem.b.value, boxes.keys, lines),
            (weighted.problem.b.value, boxes.values, self.tiles.keys),
        ]
        if self.results.boxes is not None:
            (result,) = weighted.epilogue.results
            found.append((result.buffer, self.results.boxes, STORE_ROWS))
        return tuple(own.map(list(buffers).index(value), n) for value, own, n in found)

    def emit(
        self,
        code: Code,
        values: Mapping[SSAValue, SSAValue],
        entry: str,
        maps: Sequence[Value],
        scratch: Value | None,
    ) -> None:
        """Emit the code of a thread; `values` are the entry's for the arguments of both products.

        `scratch` is where the ranges of keys are, where there are any.
        """
        code.choose(
            is_aligned(code.builder),
            lambda own: self._emit_tiles(own, values, entry, maps, scratch),
            lambda own: self._emit_rows(own, values, entry),
        )

    def _emit_rows(self, code: Code, values: Mapping[SSAValue, SSAValue], entry: str) -> None:
        """Emit the kernel for buffers that may begin anywhere, row by row."""

        def tile(own: Code, place: Tile, carried: Sequence[Value]) -> Sequence[Value]:
            batch, row, *_ = place
            emit_single_rows(own, self.plain, values, entry, (batch, row))
            own.barrier()
            return carried

        self.order.loop(code, [], tile)

    def _emit_tiles(
        self,
        code: Code,
        values: Mapping[SSAValue, SSAValue],
        entry: str,
        maps: Sequence[Value],
        scratch: Value | None,
    ) -> None:
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        scores = self.plain.scores
        ring = AttentionRing(shared, self.tiles, self.boxes, scores.problem.a.kind, scores.depth)
        emit_roles(
            code,
            self.tiles.groups,
            maps,
            ring.initialize,
            lambda own, thread: self._emit_copies(own, ring, thread, maps, scratch),
            lambda own, thread, group: _Group(self, own, ring, thread, group, values).emit(
                own, maps, scratch
            ),
        )

    def _emit_copies(
        self,
        code: Code,
        ring: AttentionRing,
        thread: Value,
        maps: Sequence[Value],
        scratch: Value | None,
    ) -> None:
        set_registers(code, _COPYING_REGISTERS[self.tiles.groups], more=False)

        def copy(own: Code) -> None:
            def tile(at: Code, place: Tile, carried: Sequence[Value]) -> Sequence[Value]:
                return ring.fill(at, place, self.key_tiles(at, scratch, place), maps, carried)

            self.order.loop(own, [own.number(0)] * 3, tile)

        code.choose(code.equal(thread, WARPGROUP * self.tiles.groups), copy)

    def key_tiles(self, code: Code, scratch: Value | None, place: Tile) -> tuple[Value, Value]:
        """Return the first tile of keys of some queries, and the one after the last: there
        is one.
        """
        ranges = self.plain.ranges
        if ranges is None or scratch is None:
            count = -(-self.plain.scores.columns // self.tiles.keys)
            return code.number(0), code.number(count)
        batch, row, *_ = place
        begin, end = ranges.load(code, scratch, batch, code.div(row, self.tiles.rows))
        return begin, code.insert(arith.MaxUIOp(end, code.number(1)))


class _Group:
    """The code of a thread of a group that multiplies; `values` are the entry's."""

    def __init__(
        self,
        whole: HopperAttention,
        code: Code,
        ring: AttentionRing,
        thread: Value,
        group: Value,
        values: Mapping[SSAValue, SSAValue],
    ) -> None:
        self.whole, self.ring, self.group, self.values = whole, ring, group, values
        self.tiles = whole.tiles
        self.lane = code.rem(thread, 32)
        self.warp = code.uniform(code.div(thread, 32))
        row = code.add(code.mul(self.warp, STORE_ROWS), code.div(self.lane, 4))
        self.row, self.column = row, code.mul(code.rem(self.lane, 4), 2)
        self.leads = code.equal(self.lane, 0)

    def emit(self, code: Code, maps: Sequence[Value], scratch: Value | None) -> None:
        """Emit all tiles of queries of the block."""
        set_registers(code, _MULTIPLYING_REGISTERS[self.tiles.groups], more=True)
        map = maps[3] if len(maps) > 3 else None
        results = self.whole.results

        def tile(own: Code, place: Tile, carried: Sequence[Value]) -> Sequence[Value]:
            keys = self.whole.key_tiles(own, scratch, place)
            *state, sums = self._tile(own, place, keys, carried)
            results.finish(
                own, self.ring.shared, map, self.values, place, self.warp, self.lane, sums
            )
            return state

        # The first group has its first turn at once.
        turn = code.xor(code.least(self.group, 1), 1)
        zero = code.number(0)
        self.whole.order.loop(code, [zero, zero, zero, turn], tile)
        results.last(code, self.lane)

    def _tile(
        self, code: Code, place: Tile, keys: tuple[Value, Value], carried: Sequence[Value]
    ) -> list[Any]:
        """Return the carried values, and the normalized sums of values."""
        stage, parity, queries, turn = carried
        ring, (begin, end) = self.ring, keys
        wait(code, ring.at(code, self.tiles.queries_full()), queries)
        scores = self._scores(code, stage, parity)
        scores = wait_for_products(code, 0, scores)
        self._release(code, False, stage)
        last = code.insert(arith.SubiOp(end, code.number(1)))
        scores = self._elementwise(code, scores, place, last, tail=True)
        running, weights, _ = RunningWeights.none(code, _ROWS).after(
            code, scores, self.whole.plain.factor
        )
        sums = [code.number(0, Float32Type())] * self.tiles.sums

        def step(own: Code, number: Value, values: Sequence[Value]) -> Sequence[Value]:
            before = RunningWeights.of(values[3:], _ROWS)
            rest = values[3 + len(before.values) :]
            registers, totals = rest[: self.tiles.keys // 4], rest[self.tiles.keys // 4 :]
            *own_state, found, made, all = self._step(
                own,
                place,
                own.insert(arith.SubiOp(last, number)),
                values[:3],
                before,
                registers,
                totals,
            )
            return [*own_state, *found.values, *made, *all]

        registers = self._packed(code, weights)
        self._wait_for_values(code, stage, parity)
        count = code.insert(arith.SubiOp(end, begin))
        one = code.number(1)
        state = code.loop(
            one, count, one, [stage, parity, turn, *running.values, *registers, *sums], step
        )
        stage, parity, turn = state[:3]
        running = RunningWeights.of(state[3:], _ROWS)
        rest = state[3 + len(running.values) :]
        registers, sums = rest[: self.tiles.keys // 4], rest[self.tiles.keys // 4 :]
        code.choose(self.leads, lambda at: arrive(at, ring.at(at, self.tiles.queries_empty())))
        begin_products(code)
        sums = self._add_values(code, stage, registers, sums)
        sums = wait_for_products(code, 0, sums)
        self._release(code, True, stage)
        stage, parity = ring.following(code, stage, parity)
        sums = normalized(code, running, sums)
        return [stage, parity, code.xor(queries, 1), turn, sums]

    def _step(
        self,
        code: Code,
        place: Tile,
        tile: Value,
        carried: Sequence[Value],
        before: RunningWeights,
        registers: Sequence[Value],
        sums: Sequence[Value],
    ) -> list[Any]:
        """Compute the scores of a tile of keys, and add the values of the previous tile,
        weighted.
        """
        stage, parity, turn = carried
        ring, tiles = self.ring, self.tiles
        next, next_parity = ring.following(code, stage, parity)
        if tiles.turns:
            wait(code, ring.barrier(code, tiles.turn(), self.group), turn)
        scores = self._scores(code, next, next_parity)
        sums = self._add_values(code, stage, registers, sums)
        if tiles.turns:
            other = code.xor(self.group, 1)
            code.choose(self.leads, lambda at: arrive(at, ring.barrier(at, tiles.turn(), other)))
        scores = wait_for_products(code, 1, scores)
        self._release(code, False, next)
        unpacked = cast(Operation, scores[0].owner)
        scores = self._elementwise(code, scores, place, tile, tail=False)
        _load_before(cast(Operation, unpacked.operands[0].owner))
        running, weights, scales = before.after(code, scores, self.whole.plain.factor)
        # The assembler would wait for products before it computes weights, were there no loop here.
        self._wait_for_values(code, next, next_parity)
        made = wait_for_products(code, 0, [*sums, *weights])
        sums, weights = made[: len(sums)], made[len(sums) :]
        self._release(code, True, stage)
        sums = [
            code.insert(arith.MulfOp(own, scales[n // 2 % _ROWS])) for n, own in enumerate(sums)
        ]
        next_registers = self._packed(code, weights)
        return [next, next_parity, code.xor(turn, 1), running, next_registers, sums]

    def _scores(self, code: Code, stage: Value, parity: Value) -> list[Value]:
        """Start computing the scores of a tile of keys."""
        wait(code, self.ring.barrier(code, self.tiles.full(False), stage), parity)
        begin_products(code)
        scores = self.ring.multiply_keys(code, self.group, stage)
        end_products(code)
        return scores

    def _add_values(
        self,
        code: Code,
        stage: Value,
        registers: Sequence[Value],
        sums: Sequence[Value],
    ) -> list[Value]:
        """Return the sums and the weighted values of a tile, to come."""
        sums = self.ring.multiply_values(code, stage, registers, sums)
        end_products(code)
        return list(sums)

    def _wait_for_values(self, code: Code, stage: Value, parity: Value) -> None:
        wait(code, self.ring.barrier(code, self.tiles.full(True), stage), parity)

    def _release(self, code: Code, of_values: bool, stage: Value) -> None:
        """Give a stage back to the thread that copies."""
        empty = self.tiles.empty(of_values)
        code.choose(self.leads, lambda at: arrive(at, self.ring.barrier(at, empty, stage)))

    def _elementwise(
        self, code: Code, sums: Sequence[Value], place: Tile, tile: Value, tail: bool
    ) -> list[Value]:
        """Apply the elementwise ops to scores; -∞ beyond the last key, in the last tile."""
        batch, row, *_ = place
        product = self.whole.plain.scores
        first, key = code.add(row, self.row), code.mul(tile, self.tiles.keys)
        least = code.number(float("-inf"), Float32Type())
        scores: list[Value] = []
        for pair in range(len(sums) // 2):
            m = code.least(code.add(first, 8 * (pair % 2)), product.rows - 1)
            n = code.add(code.add(key, self.column), 8 * (pair // 2))
            own = sums[2 * pair : 2 * pair + 2]
            for number, score in enumerate(
                elementwise_scores(code, product, own, (batch, m, n), self.values)
            ):
                if tail and product.columns % self.tiles.keys:
                    inside = code.below(code.add(n, number), product.columns)
                    score = code.select(inside, score, least)
                scores.append(score)
        return scores

    def _packed(self, code: Code, weights: Sequence[Value]) -> list[Value]:
        """Return the weights in pairs, as fragments hold them."""
        operand = self.whole.plain.weighted.problem.b.value
        type = cast(MemRefType[Any], operand.type).element_type
        return [packed(code, weights[n : n + 2], type) for n in range(0, len(weights), 2)]


def _load_before(wait: Operation) -> None:
    """Move what is read after a wait before it, with what that needs: it is under way then."""
    block = wait.parent_block()
    assert block is not None
    ops: list[Operation] = [wait]
    while (following := ops[-1].next_op) is not None:
        ops.append(following)
    held = {wait}
    for op in ops[1:]:
        depends = any(operand.owner in held for operand in op.operands)
        if depends or not (isinstance(op, _LOADS) or is_side_effect_free(op)):
            held.add(op)
    needed = set[Operation]()
    for op in reversed(ops):
        if op not in held and (isinstance(op, _LOADS) or op in needed):
            needed |= {op, *(o.owner for o in op.operands if isinstance(o.owner, Operation))}
    for op in ops:
        if op in needed and op not in held:
            op.detach()
            block.insert_op_before(op, wait)
