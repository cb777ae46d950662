"""Tiles of queries, keys and values in shared memory: who copies and who multiplies them."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import Contraction, ElementKind
from braid.lowering.gpu.kernels.hopper.attention_tiles import LINE_ELEMENTS, AttentionTiles
from braid.lowering.gpu.kernels.hopper.instructions import (
    BLOCK_ROWS,
    STEP_BYTES,
    expect,
    initialize,
    load_box,
    multiply,
    publish_barriers,
    wait,
)
from braid.lowering.gpu.kernels.hopper.maps import Boxes
from braid.lowering.gpu.kernels.hopper.order import Tile
from braid.lowering.gpu.kernels.hopper.pipeline import descriptor, low_bits
from braid.lowering.gpu.kernels.hopper.stages import Stages
from braid.lowering.gpu.kernels.hopper.tiles import LINE, WARPS

_STEP = 16
"""Steps of K of an instruction."""
_STEPS_OF_LINE = LINE // STEP_BYTES


@dataclass(frozen=True)
class AttentionBoxes:
    """The boxes of queries and values, by lines of their elements; of keys so, or by lines
    of keys.
    """

    queries: Boxes
    keys: Boxes
    values: Boxes
    keys_by_elements: bool

    @staticmethod
    def of(scores: Contraction, weighted: Contraction) -> "AttentionBoxes | None":
        """Return the boxes of the operands of both products; None where one has no tensor map."""
        queries = Boxes.of_operand(scores.a, True)
        rows = Boxes.of_operand(scores.b, True)
        keys = rows or Boxes.of_operand(scores.b, False)
        values = Boxes.of_operand(weighted.b, False)
        if queries is None or keys is None or values is None:
            return None
        return AttentionBoxes(queries, keys, values, rows is not None)


@dataclass(frozen=True)
class AttentionRing(Stages):
    """Queries, and stages of keys and values; `width` elements of a key are multiplied."""

    tiles: AttentionTiles
    boxes: AttentionBoxes
    kind: ElementKind
    width: int

    @property
    def count(self) -> int:
        """Number of slots of keys, and of slots of values."""
        return self.tiles.stages

    def at(self, code: Code, offset: int) -> Value:
        """Return the address `bytes` into shared memory."""
        return code.at(self.shared, offset)

    def initialize(self, code: Code) -> None:
        """Initialize the barriers, by one thread, before the others begin."""
        tiles, warps = self.tiles, WARPS * self.tiles.groups
        initialize(code, self.at(code, tiles.queries_full()), 1)
        initialize(code, self.at(code, tiles.queries_empty()), warps)
        for of_values in (False, True):
            for stage in range(tiles.stages):
                initialize(code, self.at(code, tiles.full(of_values, stage)), 1)
                initialize(code, self.at(code, tiles.empty(of_values, stage)), warps)
        if tiles.turns:
            for group in range(tiles.groups):
                initialize(code, self.at(code, tiles.turn(group)), WARPS)
        publish_barriers(code)

    # ---- The thread that copies ----

    def fill(
        self,
        code: Code,
        place: Tile,
        keys: tuple[Value, Value],
        maps: Sequence[Value],
        carried: Sequence[Value],
    ) -> list[Value]:
        """Copy some queries, and the tiles of keys and values that they need, from the last on.

        `carried` are a stage, the parity of its phase, and that of queries. Keys of a tile come
        before values of the previous tile, in the order of their uses.
        """
        stage, parity, queries = carried
        batch, row, *_ = place
        begin, end = keys
        self._copy_queries(code, maps[0], row, batch, queries)
        last = code.insert(arith.SubiOp(end, code.number(1)))
        self._copy(code, maps[1], False, last, batch, stage, parity)

        def turn(own: Code, number: Value, values: Sequence[Value]) -> Sequence[Value]:
            tile = own.insert(arith.SubiOp(last, number))
            next, next_parity = self.following(own, *values)
            self._copy(own, maps[1], False, tile, batch, next, next_parity)
            self._copy(own, maps[2], True, own.add(tile, 1), batch, *values)
            return [next, next_parity]

        count = code.insert(arith.SubiOp(end, begin))
        one = code.number(1)
        stage, parity = code.loop(one, count, one, [stage, parity], turn)
        self._copy(code, maps[2], True, begin, batch, stage, parity)
        return [*self.following(code, stage, parity), code.xor(queries, 1)]

    def _copy_queries(self, code: Code, map: Value, row: Value, batch: Value, turn: Value) -> None:
        tiles, boxes = self.tiles, self.boxes.queries
        full = self.at(code, tiles.queries_full())
        wait(code, self.at(code, tiles.queries_empty()), code.xor(turn, 1))
        expect(code, full, tiles.query_bytes)
        for part in range(tiles.key_width // LINE_ELEMENTS):
            at = boxes.at(code, code.number(part * LINE_ELEMENTS), row, batch)
            load_box(code, self.at(code, part * tiles.rows * LINE), map, at, full)

    def _copy(
        self,
        code: Code,
        map: Value,
        of_values: bool,
        tile: Value,
        batch: Value,
        stage: Value,
        parity: Value,
    ) -> None:
        """Copy a tile of keys or values, by boxes of 64 elements in each row."""
        tiles, boxes = self.tiles, self.boxes.values if of_values else self.boxes.keys
        width = tiles.value_width if of_values else tiles.key_width
        bytes, start = 2 * tiles.keys * width, tiles.value_start if of_values else tiles.query_bytes
        wait(code, self.barrier(code, tiles.empty(of_values), stage), code.xor(parity, 1))
        full = self.barrier(code, tiles.full(of_values), stage)
        expect(code, full, bytes)
        target = code.at(code.at(self.shared, code.mul(stage, bytes)), start)
        key = code.mul(tile, tiles.keys)
        by_elements = of_values or self.boxes.keys_by_elements
        lines = tiles.keys if by_elements else width
        for part in range(bytes // (lines * LINE)):
            first = part * LINE_ELEMENTS
            inner, outer = (code.number(first), key) if by_elements else (key, code.number(0))
            if not by_elements:
                inner = code.add(key, first)
            at = boxes.at(code, inner, outer, batch)
            load_box(code, code.at(target, part * lines * LINE), map, at, full)

    # ---- Threads that multiply ----

    def multiply_keys(self, code: Code, group: Value, stage: Value) -> list[Value]:
        """Return the products of a group's queries and a tile of keys."""
        tiles = self.tiles
        queries = self._low(code, 0, group, BLOCK_ROWS * LINE)
        keys = self._low(code, tiles.query_bytes, stage, tiles.key_bytes)
        sums: list[Value] = [code.number(0, Float32Type())] * (tiles.keys // 2)
        by_elements = self.boxes.keys_by_elements
        leading = 1 if by_elements else tiles.key_width * LINE >> 4
        for step in range(-(-self.width // _STEP)):
            line, inside = divmod(step, _STEPS_OF_LINE)
            inside *= STEP_BYTES
            own = code.add(queries, line * tiles.rows * LINE + inside >> 4)
            other = line * tiles.keys * LINE + inside if by_elements else step * _STEP * LINE
            right = descriptor(code, code.add(keys, other >> 4), leading)
            left = descriptor(code, own, 1)
            numbers = (self.kind, self.kind)
            sums = multiply(code, sums, left, right, numbers, not by_elements, step > 0)
        return sums

    def multiply_values(
        self, code: Code, stage: Value, weights: Sequence[Value], sums: Sequence[Value]
    ) -> list[Value]:
        """Return the sums, and products of weights in registers and a tile of values."""
        tiles = self.tiles
        values = self._low(code, tiles.value_start, stage, tiles.value_bytes)
        leading, made = tiles.keys * LINE >> 4, list(sums)
        for step in range(tiles.keys // _STEP):
            right = descriptor(code, code.add(values, step * _STEP * LINE >> 4), leading)
            left = weights[4 * step : 4 * step + 4]
            made = multiply(code, made, left, right, (self.kind, self.kind), True)
        return made

    def _low(self, code: Code, start: int, number: Value, bytes: int) -> Value:
        """Return the low half of the descriptor of one of several tiles that begin at `start`."""
        address = code.add(code.address(self.shared), start)
        return low_bits(code, code.add(address, code.mul(number, bytes)))
