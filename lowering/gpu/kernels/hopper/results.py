"""Write a warp's sums: the epilogue in registers, and results by copies of tensors.

Where sums are: PTX ISA, "Matrix Fragments for wgmma". Each of 4 neighbouring threads has two
neighbours in a row, and all of a warp 16 rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Protocol

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from braid.analysis.nests.stage_steps import Part
from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.epilogue import Epilogue, merge_points, point_of
from braid.lowering.gpu.contraction.partial_sums import PartialSums
from braid.lowering.gpu.contraction.problem import Contraction, merged
from braid.lowering.gpu.kernels.hopper.instructions import (
    BLOCK_ROWS,
    publish_to_copies,
    store_box,
    wait_for_stores,
)
from braid.lowering.gpu.kernels.hopper.maps import Boxes
from braid.lowering.gpu.kernels.hopper.order import Tile
from braid.lowering.gpu.kernels.hopper.tiles import (
    LEAST_LINE,
    LINE,
    STORE_BUFFERS,
    STORE_ROWS,
    WARPS,
)

_PAIR = 2
"""Neighbouring results of a thread."""
Place = tuple[Value, Value, Value]
"""A batch, a row and a column."""
Write = Callable[[Code, list[SSAValue], Place], None]
"""Stores neighbouring sums in a row."""


class ResultTiles(Protocol):
    """The tiles that a block computes, as `HopperTiles` says it."""

    @property
    def columns(self) -> int:
        """Columns of the block."""
        ...

    @property
    def blocks(self) -> int:
        """Blocks of rows that a group multiplies."""
        ...

    @property
    def sums(self) -> int:
        """Sums of a thread, in each of its blocks."""
        ...

    @property
    def store_start(self) -> int:
        """Return the byte at which boxes of results begin."""
        ...

    @property
    def store_bytes(self) -> int:
        """Bytes of the boxes of a warp."""
        ...


@dataclass(frozen=True)
class Results:
    """The epilogue of a product's tiles; `boxes` if there is one result that can be copied.

    With split-K, `partial` sums are stored.
    """

    problem: Contraction
    epilogue: Epilogue
    tiles: ResultTiles
    boxes: Boxes | None
    partial: PartialSums | None = None

    @property
    def box_columns(self) -> int:
        """Columns of a box of results."""
        return LINE // 4 if self.boxes is None else self.boxes.elements

    def finish(
        self,
        code: Code,
        shared: Value,
        map: Value | None,
        values: Mapping[SSAValue, SSAValue],
        tile: Tile,
        warp: Value,
        lane: Value,
        sums: Sequence[Value],
        scratch: Value | None = None,
    ) -> None:
        """Store what follows of a warp's sums; `warp` counts those that multiply."""
        batch, row, column, split = tile
        group, own = code.div(warp, WARPS), code.rem(warp, WARPS)
        rows = code.mul(group, self.tiles.blocks * BLOCK_ROWS)
        rows = code.add(code.add(row, rows), code.mul(own, STORE_ROWS))
        buffer = code.at(shared, code.mul(warp, self.tiles.store_bytes))
        buffer = code.at(buffer, self.tiles.store_start)
        parts = self.tiles.columns // self.box_columns
        for block in range(self.tiles.blocks):
            first = code.add(rows, block * BLOCK_ROWS)
            if map is None or self.boxes is None:
                start = block * self.tiles.sums
                own_sums = sums[start : start + self.tiles.sums]
                write = self._writer(values, scratch, split)
                self._write(code, write, (batch, first, column), lane, own_sums)
                continue
            for part in range(parts):
                at = code.add(column, part * self.box_columns)
                start = block * self.tiles.sums + part * self.box_columns // 2
                part_sums = sums[start : start + self.box_columns // 2]
                number = block * parts + part
                slot = code.at(buffer, number % STORE_BUFFERS * STORE_ROWS * LINE)
                # The last box of the tile before may lie where this first one does.
                again = number == 0 and parts * self.tiles.blocks % STORE_BUFFERS != 0
                _wait_for_slot(code, lane, 0 if again else STORE_BUFFERS - 1)
                self._stage(code, slot, values, (batch, first, at), lane, part_sums)
                self._copy(code, map, (batch, first, at), slot, lane)

    def last(self, code: Code, lane: Value) -> None:
        """Wait for all stores, before the threads end."""
        if self.boxes is not None:
            code.choose(code.equal(lane, 0), lambda at: wait_for_stores(at, 0))

    def _writer(
        self, values: Mapping[SSAValue, SSAValue], scratch: Value | None, split: Value | None
    ) -> Write:
        """Return the function that stores neighbouring sums: after the epilogue, or as partial
        sums."""
        partial = self.partial
        if partial is None or scratch is None or split is None:
            return lambda code, sums, place: self.store(code, sums, place, values)
        return lambda code, sums, place: partial.store(code, scratch, split, place, sums)

    def _copy(self, code: Code, map: Value, place: Place, slot: Value, lane: Value) -> None:
        batch, row, column = place
        boxes = self.boxes
        assert boxes is not None
        publish_to_copies(code)
        code.warp_barrier()
        code.choose(
            code.equal(lane, 0),
            lambda at: store_box(at, map, boxes.at(at, column, row, batch), slot),
        )

    def _stage(
        self,
        code: Code,
        slot: Value,
        values: Mapping[SSAValue, SSAValue],
        place: Place,
        lane: Value,
        sums: Sequence[Value],
    ) -> None:
        """Write results to shared memory, in lines whose chunks of 16 bytes are swizzled."""
        assert self.boxes is not None
        batch, row, column = place
        bytes_, line = self.boxes.bytes, self.boxes.line
        quad, eighth = code.rem(lane, 4), code.div(lane, 4)
        turn = code.bits(code.div(eighth, LINE // line), line // 16 - 1)
        for pair in range(len(sums) // _PAIR):
            half, number = pair % 2, pair // 2
            m = code.least(code.add(row, code.add(eighth, 8 * half)), self._rows - 1)
            own = code.add(code.mul(quad, _PAIR), 8 * number)
            n = code.least(code.add(column, own), self._columns - _PAIR)
            (lanes,) = self._results(
                code, sums[_PAIR * pair : _PAIR * pair + _PAIR], (batch, m, n), values
            )
            byte = code.mul(own, bytes_)
            chunk = code.xor(code.div(byte, 16), turn)
            offset = code.add(code.mul(eighth, line), code.mul(chunk, 16))
            offset = code.add(offset, code.rem(byte, 16))
            target = code.at(code.at(slot, offset), 8 * half * line)
            code.store(code.vector(lanes), target, _PAIR * bytes_)

    def _write(
        self,
        code: Code,
        write: Write,
        place: Place,
        lane: Value,
        sums: Sequence[Value],
    ) -> None:
        """Store neighbours where they are no box."""
        batch, row, column = place
        quad, eighth = code.rem(lane, 4), code.div(lane, 4)
        pairs = self.partial or self.epilogue.width(self.problem.columns) % _PAIR == 0
        width = _PAIR if pairs else 1
        for number, first in enumerate(range(0, len(sums), width)):
            pair, rest = divmod(number * width, _PAIR)
            m = code.add(row, code.add(eighth, 8 * (pair % 2)))
            n = code.add(column, code.add(code.mul(quad, _PAIR), 8 * (pair // 2) + rest))
            inside = code.insert(
                arith.AndIOp(code.below(m, self._rows), code.below(n, self._columns))
            )
            own = list(sums[first : first + width])
            code.choose(
                inside,
                lambda at, own=own, m=m, n=n: write(at, own, (batch, m, n)),
            )

    @property
    def _rows(self) -> int:
        return self.problem.count(self.problem.rows)

    @property
    def _columns(self) -> int:
        return self.problem.count(self.problem.columns)

    def store(
        self,
        code: Code,
        sums: list[SSAValue],
        place: Place,
        values: Mapping[SSAValue, SSAValue],
    ) -> None:
        """Apply the epilogue to neighbouring sums in a row, and store the results."""
        point, lane = self._point(code, place)
        self.epilogue.emit(code, sums, point, lane, values)

    def _results(
        self,
        code: Code,
        sums: Sequence[Value],
        place: Place,
        values: Mapping[SSAValue, SSAValue],
    ) -> list[list[SSAValue]]:
        point, lane = self._point(code, place)
        return self.epilogue.compute(code, list(sums), point, lane, values)

    def _point(self, code: Code, place: Place) -> tuple[dict[int, Value], int | None]:
        kinds = (self.problem.batches, self.problem.rows, self.problem.columns)
        points = [point_of(code, parts, n) for parts, n in zip(kinds, place, strict=True)]
        lane = self.problem.columns[-1].dim if self.problem.columns else None
        return merge_points(code, *points), lane


def result_boxes(problem: Contraction, epilogue: Epilogue, columns: int) -> Boxes | None:
    """Return the boxes of the only result, if it is contiguous along columns as the product is.

    Tiles of this many columns consist of whole boxes.
    """
    if len(epilogue.results) != 1 or epilogue.width(problem.columns) % _PAIR:
        return None
    steps = epilogue.steps_of(epilogue.results[0])

    def terms(parts: Sequence[Part]) -> tuple[tuple[int, int], ...]:
        return merged([(p.extent, p.factor * steps.get(p.dim, 0)) for p in parts])

    kinds = (problem.columns, problem.rows, problem.batches)
    number, bytes_ = epilogue.number_of(epilogue.results[0])
    line = gcd(LINE, columns * bytes_)
    if number is None or line < LEAST_LINE:
        return None
    found = Boxes.of(number, bytes_, *map(terms, kinds))
    return None if found is None else replace(found, line=line)


def _wait_for_slot(code: Code, lane: Value, left: int) -> None:
    """Wait until all but `left` boxes of the warp have been read."""
    code.choose(code.equal(lane, 0), lambda at: wait_for_stores(at, left))
    code.warp_barrier()
