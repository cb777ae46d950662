"""The code of products by AMX: blocks of tile registers with an elementwise epilogue.

A block of `row_tiles` × `column_tiles` sums stays in registers while the reduction passes; then it
is stored: to the result where there is no epilogue, else to scratch memory, where the epilogue
reads it by vectors while the next block is multiplied. B is read as it is packed, A in place.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith

from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx.block import ROW_BYTES, BlockedProduct, RowTile
from braid.lowering.cpu.kernels.amx.block_writer import BlockWriter
from braid.lowering.cpu.kernels.amx.stored_sums import StoredSums
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index

_CONFIGURATION_BYTES = 64
"""The bytes of the shapes of all registers, in scratch memory."""


@dataclass(frozen=True)
class AmxContraction(BlockedProduct):
    """Emits a contraction with one block per grid iteration."""

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    @property
    def scratch_bytes(self) -> int:
        """The sums of two blocks, unless they are the result, and the registers' configuration."""
        return _CONFIGURATION_BYTES + (0 if self.stores_sums else 2 * self.block.sum_bytes)

    def begin(self, e: Emitter, buffers: Sequence[Buffer]) -> None:
        """Give all registers their shapes."""
        block, row_bytes = self.block, self.block.steps * amx.STEP_BYTES
        shapes = {
            **dict.fromkeys(range(block.products), (block.rows, ROW_BYTES)),
            **dict.fromkeys(self.registers.a, (block.rows, row_bytes)),
            **dict.fromkeys(self.registers.b, (block.steps, ROW_BYTES)),
        }
        at = (self.scratch_bytes - _CONFIGURATION_BYTES) // 4
        amx.configure(e, buffers[-1], at, [shapes[number] for number in sorted(shapes)])

    def end(self, e: Emitter, buffers: Sequence[Buffer]) -> None:
        """Emit the epilogue of the last block, and release all tile registers."""
        if not self.stores_sums:
            first, end = e.iterations
            is_any = e.insert(arith.CmpiOp(first, end, "ult"))

            def last() -> None:
                self._sums_of(e, buffers, e.sub(end, 1)).store(0, self.block.rows)

            e.when(is_any, last)
        amx.release(e)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Compute one block; the tiles of rows that are left at the end have a block of
        their own.
        """
        batch, group, column_block = self._place(e, index)
        whole, rest = divmod(self.tiles, self.block.row_tiles)
        first_tile = e.mul(group, self.block.row_tiles)
        before = None if self.stores_sums else self._sums_before(e, buffers, index)
        begin = self._sums_at(e, index)

        def emit(count: int) -> None:
            tiles = [self._row_tile(e, batch, e.add(first_tile, n)) for n in range(count)]
            BlockWriter(self, e, buffers, tiles, column_block, group, begin, before).write()

        if rest == 0:
            emit(self.block.row_tiles)
        elif whole == 0:
            emit(rest)
        else:
            e.branch(group, whole, lambda: emit(self.block.row_tiles), lambda: emit(rest))

    def _place(self, e: Emitter, index: Index) -> tuple[list[Index], Index, Index]:
        """Return the batch, group of rows and block of columns of an iteration."""
        *batch, first, second = e.coordinates(index, self.grid_extents)
        return (batch, second, first) if self.columns_outside else (batch, first, second)

    def _sums_at(self, e: Emitter, index: Index) -> Index:
        """Return where in scratch memory the sums of an iteration are: one block or the other."""
        _, odd = e.divmod(index, 2)
        return e.mul(odd, self.block.sum_bytes // 4)

    def _sums_before(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> StoredSums:
        """Return the sums of the previous iteration; the first one of a call has none to store."""
        is_later = e.insert(arith.CmpiOp(e.index(index), e.iterations[0], "ugt"))
        one, none = e.index(1), e.index(0)
        step = e.insert(arith.SelectOp(is_later, one, none))
        return self._sums_of(e, buffers, e.sub(index, step), e.mul(step, self.block.rows))

    def _sums_of(
        self, e: Emitter, buffers: Sequence[Buffer], index: Index, rows: Index | None = None
    ) -> StoredSums:
        """Return the sums of an iteration; `rows` of each tile are stored, all if None."""
        block = self.block
        batch, group, column_block = self._place(e, index)
        first_tile = e.mul(group, block.row_tiles)
        tiles, ends = list[RowTile](), list[Index]()
        limit = block.rows if rows is None else rows
        for number in range(block.row_tiles):
            tile, end = e.add(first_tile, number), limit
            if self.tiles % block.row_tiles:
                end = self._if_exists(e, tile, limit)
                tile = e.minimum(tile, self.tiles - 1)
            tiles.append(self._row_tile(e, batch, tile))
            ends.append(end)
        begin = self._sums_at(e, index)
        sums = StoredSums(self, e, buffers, tiles, ends, begin, column_block)
        sums.prepare()
        return sums

    def _if_exists(self, e: Emitter, tile: Index, rows: Index) -> Index:
        """Return `rows` for a tile that exists, 0 beyond the last one."""
        exists = e.insert(arith.CmpiOp(e.index(tile), e.index(self.tiles), "ult"))
        return e.insert(arith.SelectOp(exists, e.index(rows), e.index(0)))

    def _row_tile(self, e: Emitter, batch: Sequence[Index], number: Index) -> RowTile:
        """Return the last tile of a line ends where the line does, and begins within the one
        before.
        """
        row, rows = self.nest.row, self.block.rows
        extents = [*(dim.extent for dim in self.lines), self.tiles_of_line]
        *line, place = e.coordinates(number, extents)
        wanted = e.mul(place, rows)
        first = wanted if row.extent % rows == 0 else e.minimum(wanted, row.extent - rows)
        places, dims = [*batch, *line, first], [*self.batches, *self.lines, row]
        bases = [
            e.dot(places, [dim.strides[tensor] for dim in dims])
            for tensor in range(len(row.strides))
        ]
        bases[0] = e.add(bases[0], self.nest.a_start)
        return RowTile(tuple(bases), e.sub(wanted, first) if first is not wanted else 0)
