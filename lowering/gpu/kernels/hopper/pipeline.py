"""A ring of stages in shared memory that one thread fills by copies of tensors, and others use."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.kernels.hopper.instructions import (
    arrive,
    begin_products,
    end_products,
    expect,
    initialize,
    load_box,
    multiply,
    publish_barriers,
    wait,
    wait_for_products,
)
from braid.lowering.gpu.kernels.hopper.maps import Boxes
from braid.lowering.gpu.kernels.hopper.order import Tile
from braid.lowering.gpu.kernels.hopper.stages import Stages
from braid.lowering.gpu.kernels.hopper.tiles import LINE, WARPS, HopperTiles

_ROWS_OF_ATOM = 8
_SWIZZLES = {128: 1, 64: 2, 32: 3}
"""The swizzles of descriptors, by the bytes of a line."""
_ADDRESS_MASK = 0x3FFF


@dataclass(frozen=True)
class Ring(Stages):
    """The stages of a product."""

    tiles: HopperTiles
    a: Boxes
    b: Boxes
    b_along_depth: bool
    numbers: tuple[ElementKind, ElementKind]
    turns: int

    @property
    def count(self) -> int:
        """Number of stages of both operands together."""
        return self.tiles.stages

    @property
    def depth(self) -> int:
        """Elements of a stage along K."""
        return self.a.elements

    def initialize(self, code: Code) -> None:
        """Initialize the barriers, by one thread, before the others begin."""
        for stage in range(self.tiles.stages):
            initialize(code, code.at(self.shared, self.tiles.full(stage)), 1)
            arrivals = WARPS * self.tiles.groups
            initialize(code, code.at(self.shared, self.tiles.empty(stage)), arrivals)
        publish_barriers(code)

    def fill(
        self, code: Code, tile: Tile, maps: Sequence[Value], carried: Sequence[Value]
    ) -> list[Value]:
        """Copy all stages of a tile; `carried` are a stage and the parity of its phase."""
        batch, row, column, split = tile
        tiles = self.tiles
        first = code.number(0) if split is None else code.mul(split, self.turns)

        def turn(own: Code, number: Value, values: Sequence[Value]) -> Sequence[Value]:
            stage, parity = values
            # The groups that multiply have released the slot of this stage.
            wait(own, self.barrier(own, tiles.empty(), stage), own.xor(parity, 1))
            # The phase of `full` ends when all bytes of the stage have arrived.
            full = self.barrier(own, tiles.full(), stage)
            expect(own, full, tiles.stage_bytes)
            target = own.at(self.shared, own.mul(stage, tiles.stage_bytes))
            # A[rows, depth] comes first in the slot, B[depth, columns] after it.
            depth = own.mul(own.add(first, number), self.depth)
            load_box(own, target, maps[0], self.a.at(own, depth, row, batch), full)
            target = own.at(target, tiles.a_bytes)
            self._fill_b(own, target, (batch, depth, column), maps[1], full)
            return self.following(own, stage, parity)

        begin, end, step = (code.number(n) for n in (0, self.turns, 1))
        return code.loop(begin, end, step, carried, turn)

    def _fill_b(
        self, code: Code, target: Value, at: tuple[Value, Value, Value], map: Value, full: Value
    ) -> None:
        """Copy what a stage of A is multiplied by, at a batch, a place along K and a column."""
        batch, depth, column = at
        if self.b_along_depth:
            load_box(code, target, map, self.b.at(code, depth, column, batch), full)
            return
        width = self.b.elements
        for part in range(self.tiles.b_columns // width):
            indices = self.b.at(code, code.add(column, part * width), depth, batch)
            load_box(code, code.at(target, part * self.depth * self.b.line), map, indices, full)

    def add_up(
        self, code: Code, group: Value, lane: Value, zero: Value, carried: Sequence[Value]
    ) -> list[Value]:
        """Return a stage and its parity after a tile, and the thread's sums of the tile."""
        tiles = self.tiles
        first = code.equal(lane, 0)
        address = code.address(self.shared)
        rows = low_bits(code, code.add(address, code.mul(group, tiles.blocks * _block_bytes())))
        columns = low_bits(code, code.add(address, tiles.a_bytes))

        def turn(own: Code, number: Value, values: Sequence[Value]) -> Sequence[Value]:
            stage, parity, previous, *sums = values
            # The stage has arrived.
            wait(own, self.barrier(own, tiles.full(), stage), parity)
            # sums += A[rows of the group, depth] · B[depth, columns], asynchronously.
            begin_products(own)
            start = own.mul(stage, tiles.stage_bytes >> 4)
            a, b = (own.add(place, start) for place in (rows, columns))
            sums = self._multiply(own, a, b, sums)
            end_products(own)
            # All products but these have ended, so the slot of the previous stage can be filled
            # again; the first iteration has none.
            sums = wait_for_products(own, 1, sums)
            later = own.insert(arith.CmpiOp(number, own.number(0), "ne"))
            done = own.insert(arith.AndIOp(later, first))
            own.choose(done, lambda at: arrive(at, self.barrier(at, tiles.empty(), previous)))
            return [*self.following(own, stage, parity), stage, *sums]

        count = tiles.sums * tiles.blocks
        begin, end, step = (code.number(n) for n in (0, self.turns, 1))
        start = [*carried, code.number(0), *[zero] * count]
        stage, parity, previous, *sums = code.loop(begin, end, step, start, turn)
        sums = wait_for_products(code, 0, sums)
        code.choose(first, lambda at: arrive(at, self.barrier(at, tiles.empty(), previous)))
        return [stage, parity, *sums]

    def _multiply(self, code: Code, a: Value, b: Value, sums: Sequence[Value]) -> list[Value]:
        """Return a stage; `a` and `b` are the low halves of descriptors of its first matrices."""
        made = list(sums)
        count = self.tiles.sums
        line = LINE if self.b_along_depth else self.b.line
        leading = 1 if self.b_along_depth else self.depth * line >> 4
        by_lines = 2 if self.b_along_depth else (line * 2 * _ROWS_OF_ATOM) >> 4
        for step in range(4):
            right = descriptor(code, code.add(b, step * by_lines), leading, line)
            for block in range(self.tiles.blocks):
                place = step * 2 + block * (_block_bytes() >> 4)
                left = descriptor(code, code.add(a, place), 1, LINE)
                own = made[block * count : (block + 1) * count]
                made[block * count : (block + 1) * count] = multiply(
                    code, own, left, right, self.numbers, not self.b_along_depth
                )
        return made


def _block_bytes() -> int:
    """Return the bytes of the rows of A of one instruction."""
    return 64 * LINE


def low_bits(code: Code, address: Value) -> Value:
    """Return the bits of an address that a descriptor has."""
    return code.bits(code.div(address, 16), _ADDRESS_MASK)


def descriptor(code: Code, low: Value, leading: int, line: int = LINE) -> Value:
    """Return the descriptor of a matrix in lines of `bytes` bytes, `leading` chunks from a line to
    the next.
    """
    eight = _ROWS_OF_ATOM * line >> 4
    rest = code.number(_SWIZZLES[line] << 62 | eight << 32 | leading << 16, i64)
    return code.insert(arith.OrIOp(code.wide(low), rest))
