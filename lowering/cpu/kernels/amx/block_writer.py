"""The code of one block: products of tiles into sums, while the block before gets its epilogue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import LoopDim
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx.block import ROW_BYTES, BlockedProduct, RowTile, innermost
from braid.lowering.cpu.kernels.amx.stored_sums import StoredSums
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index

_UNROLLED_PRODUCTS = 16
"""The tile products in the body of the innermost loop."""

_AHEAD_BYTES = 4096
"""The bytes by which prefetches of B are ahead of its use: weights come from beyond the L2 cache. A
convolution of 256 channels, 14 x 14, took 0.88 of the time (2 KiB: 0.91, 8 KiB: 0.93, 16 KiB:
0.98)."""


@dataclass(frozen=True)
class BlockWriter:
    """One block of some tiles of rows and a block of columns.

    Its sums go to scratch memory from `sums_at` on, while the ones of the block `before` are
    stored; None where sums are the result.
    """

    kernel: BlockedProduct
    e: Emitter
    buffers: Sequence[Buffer]
    tiles: Sequence[RowTile]
    column_block: Index
    row_group: Index
    sums_at: Index
    before: StoredSums | None

    def write(self) -> None:
        """Add up and store; the last columns are fewer."""
        whole, rest = divmod(self.kernel.nest.columns, self.kernel.columns)
        self.e.branch(
            self.column_block if whole and rest else 0,
            whole,
            lambda: self._write(self.kernel.columns),
            lambda: self._write(rest),
        )

    def _write(self, columns: int) -> None:
        e = self.e
        count = -(-columns // amx.COLUMNS)
        for number in range(len(self.tiles) * count):
            amx.zero(e, number)
        self._reduce(count)
        for place, tile in enumerate(self.tiles):
            for column in range(count):
                self._store(tile, place, column, place * count + column)

    def _reduce(self, count: int) -> None:
        """Emit the loops of the reduction; the innermost one is over chunks of K."""
        e, kernel, nest = self.e, self.kernel, self.kernel.nest
        group = kernel.product.group
        outer, last = innermost(nest, group)
        b_row = kernel.columns * group
        a_chunk, b_chunk = kernel.block.steps * group, kernel.block.steps * b_row
        base = e.add(self.tiles[0].bases[1], e.mul(self.column_block, nest.block_stride))
        share = -(-kernel.block.rows // (nest.depth // kernel.block.steps))

        def at(dims: Sequence[LoopDim], a_at: Index, number: Index) -> None:
            """Move to chunk `number` of B; chunks are contiguous."""

            def one(n: Index) -> None:
                a_step, b_step = dims[0].strides
                a = e.add(a_at, e.mul(n, a_step))
                at(dims[1:], a, e.add(number, e.mul(n, b_step // b_chunk)))

            def chunk(n: Index) -> None:
                a, place = e.add(a_at, e.mul(n, a_chunk)), e.add(number, n)
                starts = [e.add(tile.bases[0], a) for tile in self.tiles]
                self._prefetch(base, place, b_chunk)
                self._multiply(starts, e.add(base, e.mul(place, b_chunk)), count, b_row)
                if self.before is not None:
                    self.before.store(e.mul(place, share), share)
                elif kernel.result_is_far:
                    self._prefetch_result(e.mul(place, share), share, count)

            if dims:
                e.loop(0, dims[0].extent, 1, one)
            else:
                self._unrolled(last.extent // kernel.block.steps, len(self.tiles) * count, chunk)

        at(outer, 0, 0)

    def _prefetch(self, base: Index, chunk: Index, size: int) -> None:
        """Prefetch the elements of B that are read later; chunks have `size` elements.

        If all rows use a block of columns, each group of rows prefetches its share of the next
        block, so that this comes from memory during the multiplications. Groups for which nothing
        is left ask for the last lines again, as those of the last block do for their own: after B
        may be no memory, for which a prefetch takes long. A single group takes no longer than its
        loads do, which processors foresee.
        """
        e, kernel, b = self.e, self.kernel, self.buffers[self.kernel.nest.b]
        if kernel.row_groups == 1:
            return
        line = ROW_BYTES // bytes_of(b.element_type)
        lines = -(-size // line)
        if not kernel.columns_outside or kernel.column_blocks == 1:
            ahead = e.add(base, e.add(e.mul(chunk, size), _AHEAD_BYTES * line // ROW_BYTES))
            for number in range(lines):
                b.prefetch(e, e.add(ahead, number * line))
            return
        sharing = min(kernel.row_groups, lines)
        share, chunks = -(-lines // sharing), kernel.nest.depth // kernel.block.steps
        group = e.minimum(self.row_group, sharing - 1)
        first = e.mul(e.add(e.mul(group, chunks), chunk), share * line)
        following = e.minimum(e.add(self.column_block, 1), kernel.column_blocks - 1)
        begin = e.add(self.tiles[0].bases[1], e.mul(following, kernel.nest.block_stride))
        ahead = e.add(begin, first)
        for number in range(share):
            b.prefetch(e, e.add(ahead, number * line), level=2)

    def _prefetch_result(self, first: Index, rows: int, count: int) -> None:
        """Prefetch the rows of each tile from row `first` on for writing; the last one again if
        there are no more.
        """
        e, nest = self.e, self.kernel.nest
        for row in range(rows):
            number = e.minimum(e.add(first, row), self.kernel.block.rows - 1)
            line = e.mul(number, nest.row.strides[-1])
            for tile in self.tiles:
                for column in range(count):
                    at = e.add(self._result_at(tile, column), line)
                    self.buffers[-2].prefetch(e, at, to_write=True)

    def _result_at(self, tile: RowTile, column: int) -> Index:
        """Return where the first row of a register belongs."""
        vector = self.e.add(self.e.mul(self.column_block, self.kernel.block.column_tiles), column)
        return self.e.add(tile.bases[-1], self.e.mul(vector, self.kernel.nest.vector_steps[-1]))

    def _unrolled(self, count: int, products: int, body: Callable[[Index], None]) -> None:
        """Run iterations one after the other if they do more than multiply."""
        unroll = max(1, _UNROLLED_PRODUCTS // products) if self.before is None else 1
        e = self.e
        whole = count - count % unroll if count > unroll else 0

        def several(chunk: Index) -> None:
            for number in range(unroll):
                body(e.add(chunk, number))

        if whole:
            e.loop(0, whole, unroll, several)
        for chunk in range(whole, count):
            body(chunk)

    def _multiply(self, a_at: Sequence[Index], b_at: Index, count: int, b_row: int) -> None:
        """Add a chunk of steps to all sums, the operand of fewer tiles being held."""
        e, kernel, nest = self.e, self.kernel, self.kernel.nest
        registers = kernel.registers
        a, b = self.buffers[nest.a], self.buffers[nest.b]
        a_row = nest.row.strides[0]

        def load_a(place: int) -> int:
            register = registers.a[place % len(registers.a)]
            amx.load(e, register, a, a_at[place], a_row)
            return register

        def load_b(column: int) -> int:
            register = registers.b[column % len(registers.b)]
            at = e.add(b_at, column * amx.COLUMNS * kernel.product.group)
            amx.load(e, register, b, at, b_row)
            return register

        rows_held = kernel.block.row_tiles <= kernel.block.column_tiles
        held, passing = (load_a, load_b) if rows_held else (load_b, load_a)
        outer, inner = (count, len(a_at)) if rows_held else (len(a_at), count)
        kept = [held(number) for number in range(inner)]
        for number in range(outer):
            other = passing(number)
            for place, register in enumerate(kept):
                row, column = (place, number) if rows_held else (number, place)
                operands = (register, other) if rows_held else (other, register)
                amx.multiply_add(e, kernel.product, row * count + column, *operands)

    def _store(self, tile: RowTile, place: int, column: int, register: int) -> None:
        """Store the sums of a register; rows that overlap are written twice with equal values."""
        e, kernel, nest = self.e, self.kernel, self.kernel.nest
        width = kernel.block.column_tiles
        if self.before is None:
            at = self._result_at(tile, column)
            amx.store(e, register, self.buffers[-2], at, nest.row.strides[-1])
        else:
            first = (place * kernel.block.rows * width + column) * amx.COLUMNS
            at = e.add(self.sums_at, first)
            amx.store(e, register, self.buffers[-1], at, width * amx.COLUMNS)
