"""The code of products by AMX: blocks of tile registers with an elementwise epilogue.

A block of `row_tiles` × `column_tiles` sums stays in registers while the reduction passes; then it
is stored: to the result where there is no epilogue, else to scratch memory, where the epilogue
reads it by vectors while the next block is multiplied. B is read as it is packed, A where it lies.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.emitted_dialects import vector
from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx.instructions import TileProduct
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.lowering.cpu.kernels.groups.loop_dims import LoopDim
from braid.lowering.cpu.kernels.pointwise.epilogue import Epilogue, TileStore, tile_masks

_UNROLLED_PRODUCTS = 16
"""Of tiles, in the body of the innermost loop."""


@dataclass(frozen=True)
class Block:
    """`row_tiles` × `column_tiles` sums of `rows` rows; products are over `steps` steps."""

    rows: int
    steps: int
    row_tiles: int
    column_tiles: int

    @property
    def products(self) -> int:
        """Of tiles, for so many steps."""
        return self.row_tiles * self.column_tiles

    @property
    def fits(self) -> bool:
        """Whether there are registers for the sums, the fewer operands, and one of the others."""
        held = min(self.row_tiles, self.column_tiles)
        return self.products + held + 1 <= amx.REGISTERS

    @property
    def sum_bytes(self) -> int:
        """Of the sums in scratch memory."""
        return self.products * self.rows * _ROW_BYTES


_ROW_BYTES = 64

_CONFIGURATION_BYTES = 64

_AHEAD_BYTES = 4096
"""How far ahead of its use B is asked for: weights come from beyond the second cache. A convolution
of 256 channels, 14 x 14, took 0.88 of the time (2 KiB: 0.91, 8 KiB: 0.93, 16 KiB: 0.98)."""


def innermost(problem: Contraction, group: int) -> tuple[tuple[LoopDim, ...], LoopDim]:
    """The reduction as loops around one over steps whose numbers of A are neighbours."""
    *outer, last = problem.reduction
    if last.strides[0] == group:
        return tuple(outer), last
    return problem.reduction, LoopDim(1, (group, 0))


def stores_sums(problem: Contraction) -> bool:
    """Whether the result is the sums themselves, in rows of whole registers."""
    is_sums = problem.points.results == (problem.anchor,)
    return (
        is_sums and problem.vector_steps[-1] == amx.COLUMNS and problem.columns % amx.COLUMNS == 0
    )


@dataclass(frozen=True)
class AmxContraction:
    """Emits a contraction with one block per grid iteration.

    `problem.block_stride` is that of blocks of B as wide as `block`. `columns_outside` says that
    a block of B is used for all rows before the next one. `result_is_far` says that the second
    cache does not hold the result, whose lines are asked for then while a block is multiplied.
    """

    problem: Contraction
    block: Block
    columns_outside: bool
    product: TileProduct
    result_is_far: bool = False

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Outer dims that change B, and then blocks of columns and of tiles of rows."""
        groups = -(-self._tiles // self.block.row_tiles)
        inner = (
            (self.column_blocks, groups) if self.columns_outside else (groups, self.column_blocks)
        )
        return (*(dim.extent for dim in self._batches), *inner)

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    @property
    def scratch_bytes(self) -> int:
        """The sums of two blocks, unless they are the result, and the registers' configuration."""
        return _CONFIGURATION_BYTES + (0 if self.stores_sums else 2 * self.block.sum_bytes)

    @cached_property
    def stores_sums(self) -> bool:
        """See the function."""
        return stores_sums(self.problem)

    @property
    def row_groups(self) -> int:
        """Blocks of tiles of rows, for each batch."""
        return -(-self._tiles // self.block.row_tiles)

    @property
    def column_blocks(self) -> int:
        """Blocks of columns of B."""
        return -(-self.problem.columns // self.columns)

    @property
    def columns(self) -> int:
        """Of a block."""
        return self.block.column_tiles * amx.COLUMNS

    def begin(self, e: Emitter, buffers: Sequence[Buffer]) -> None:
        """Gives all registers their shapes."""
        block, row_bytes = self.block, self.block.steps * amx.STEP_BYTES
        shapes = {
            **dict.fromkeys(range(block.products), (block.rows, _ROW_BYTES)),
            **dict.fromkeys(self.registers.a, (block.rows, row_bytes)),
            **dict.fromkeys(self.registers.b, (block.steps, _ROW_BYTES)),
        }
        at = (self.scratch_bytes - _CONFIGURATION_BYTES) // 4
        amx.configure(e, buffers[-1], at, [shapes[number] for number in sorted(shapes)])

    def end(self, e: Emitter, buffers: Sequence[Buffer]) -> None:
        """The epilogue of the last block; gives all registers back."""
        if not self.stores_sums:
            first, end = e.iterations
            is_any = e.insert(arith.CmpiOp(first, end, "ult"))

            def last() -> None:
                self._sums_of(e, buffers, e.sub(end, 1)).store(0, self.block.rows)

            e.when(is_any, last)
        amx.release(e)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """One block; the tiles of rows that are left at the end have a block of their own."""
        batch, group, column_block = self._place(e, index)
        whole, rest = divmod(self._tiles, self.block.row_tiles)
        first_tile = e.mul(group, self.block.row_tiles)
        before = None if self.stores_sums else self._sums_before(e, buffers, index)
        begin = self._sums_at(e, index)

        def emit(count: int) -> None:
            tiles = [self._row_tile(e, batch, e.add(first_tile, n)) for n in range(count)]
            _BlockWriter(self, e, buffers, tiles, column_block, group, begin, before).write()

        if rest == 0:
            emit(self.block.row_tiles)
        elif whole == 0:
            emit(rest)
        else:
            e.branch(group, whole, lambda: emit(self.block.row_tiles), lambda: emit(rest))

    def _place(self, e: Emitter, index: Index) -> tuple[list[Index], Index, Index]:
        """Batch, group of rows and block of columns of an iteration."""
        *batch, first, second = e.coordinates(index, self.grid_extents)
        return (batch, second, first) if self.columns_outside else (batch, first, second)

    def _sums_at(self, e: Emitter, index: Index) -> Index:
        """Where in scratch memory the sums of an iteration are: one block or the other."""
        _, odd = e.divmod(index, 2)
        return e.mul(odd, self.block.sum_bytes // 4)

    def _sums_before(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> "_StoredSums":
        """Those of the iteration before, of which the first one of a call stores nothing."""
        is_later = e.insert(arith.CmpiOp(e.index(index), e.iterations[0], "ugt"))
        one, none = e.index(1), e.index(0)
        step = e.insert(arith.SelectOp(is_later, one, none))
        return self._sums_of(e, buffers, e.sub(index, step), e.mul(step, self.block.rows))

    def _sums_of(
        self, e: Emitter, buffers: Sequence[Buffer], index: Index, rows: Index | None = None
    ) -> "_StoredSums":
        """Those of an iteration; `rows` are stored of each tile, all if None."""
        block = self.block
        batch, group, column_block = self._place(e, index)
        first_tile = e.mul(group, block.row_tiles)
        tiles, ends = list[_RowTile](), list[Index]()
        limit = block.rows if rows is None else rows
        for number in range(block.row_tiles):
            tile, end = e.add(first_tile, number), limit
            if self._tiles % block.row_tiles:
                end = self._if_exists(e, tile, limit)
                tile = e.minimum(tile, self._tiles - 1)
            tiles.append(self._row_tile(e, batch, tile))
            ends.append(end)
        begin = self._sums_at(e, index)
        sums = _StoredSums(self, e, buffers, tiles, ends, begin, column_block)
        sums.prepare()
        return sums

    def _if_exists(self, e: Emitter, tile: Index, rows: Index) -> Index:
        """`rows` of a tile, none of one behind the last."""
        exists = e.insert(arith.CmpiOp(e.index(tile), e.index(self._tiles), "ult"))
        return e.insert(arith.SelectOp(exists, e.index(rows), e.index(0)))

    @cached_property
    def registers(self) -> "_Registers":
        """Which registers hold what."""
        return _Registers.of(self.block)

    @property
    def _batches(self) -> tuple[LoopDim, ...]:
        """The leading outer dims that change B."""
        outer = self.problem.outer
        changing = [number for number, dim in enumerate(outer) if dim.strides[1]]
        return outer[: changing[-1] + 1] if changing else ()

    @property
    def _lines(self) -> tuple[LoopDim, ...]:
        """The other outer dims."""
        return self.problem.outer[len(self._batches) :]

    @property
    def _tiles_of_line(self) -> int:
        return -(-self.problem.row.extent // self.block.rows)

    @property
    def _tiles(self) -> int:
        """Of rows, for each batch."""
        return self._tiles_of_line * math.prod(dim.extent for dim in self._lines)

    def _row_tile(self, e: Emitter, batch: Sequence[Index], number: Index) -> "_RowTile":
        """The last tile of a line ends where the line does, and begins within the one before."""
        row, rows = self.problem.row, self.block.rows
        extents = [*(dim.extent for dim in self._lines), self._tiles_of_line]
        *line, place = e.coordinates(number, extents)
        wanted = e.mul(place, rows)
        first = wanted if row.extent % rows == 0 else e.minimum(wanted, row.extent - rows)
        places, dims = [*batch, *line, first], [*self._batches, *self._lines, row]
        bases = [
            e.dot(places, [dim.strides[tensor] for dim in dims])
            for tensor in range(len(row.strides))
        ]
        bases[0] = e.add(bases[0], self.problem.a_start)
        return _RowTile(tuple(bases), e.sub(wanted, first) if first is not wanted else 0)


@dataclass(frozen=True)
class _RowTile:
    """Rows from `bases` of A, B, the leaves and C on; the first `known` are stored already."""

    bases: tuple[Index, ...]
    known: Index


@dataclass(frozen=True)
class _Registers:
    """The registers of A and B; those of the sums come before them."""

    a: range
    b: range

    @staticmethod
    def of(block: Block) -> "_Registers":
        """All of the operand of which fewer tiles are needed, and what is left for the other."""
        first, least = block.products, min(block.row_tiles, block.column_tiles)
        most = max(block.row_tiles, block.column_tiles)
        held = range(first, first + least)
        passing = range(held.stop, min(amx.REGISTERS, held.stop + most))
        return _Registers(*((held, passing) if block.row_tiles == least else (passing, held)))


@dataclass(frozen=True)
class _BlockWriter:
    """One block of some tiles of rows and a block of columns.

    Its sums go to scratch memory from `sums_at` on, while the ones of the block `before` are
    stored; None where sums are the result.
    """

    kernel: AmxContraction
    e: Emitter
    buffers: Sequence[Buffer]
    tiles: Sequence[_RowTile]
    column_block: Index
    row_group: Index
    sums_at: Index
    before: "_StoredSums | None"

    def write(self) -> None:
        """Adds up and stores; the last columns are fewer."""
        whole, rest = divmod(self.kernel.problem.columns, self.kernel.columns)
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
        """The loops of the reduction; the innermost one is over chunks of steps."""
        e, kernel, problem = self.e, self.kernel, self.kernel.problem
        group = kernel.product.group
        outer, last = innermost(problem, group)
        b_row = kernel.columns * group
        a_chunk, b_chunk = kernel.block.steps * group, kernel.block.steps * b_row
        base = e.add(self.tiles[0].bases[1], e.mul(self.column_block, problem.block_stride))
        share = -(-kernel.block.rows // (problem.depth // kernel.block.steps))

        def at(dims: Sequence[LoopDim], a_at: Index, number: Index) -> None:
            """From chunk `number` of B on, of which one follows the other."""

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
        """Asks for what is read of B later; chunks have `size` elements.

        Where all rows pass by a block of columns, each group of rows asks for its share of the
        next block, so that these come from memory while all of them multiply. Groups for which
        nothing is left ask for the last lines again, as those of the last block do for their own:
        behind B may be no memory, for which a prefetch takes long. A single group takes no longer
        than its loads do, which processors foresee.
        """
        e, kernel, b = self.e, self.kernel, self.buffers[self.kernel.problem.b]
        if kernel.row_groups == 1:
            return
        line = _ROW_BYTES // bytes_of(b.element_type)
        lines = -(-size // line)
        if not kernel.columns_outside or kernel.column_blocks == 1:
            ahead = e.add(base, e.add(e.mul(chunk, size), _AHEAD_BYTES * line // _ROW_BYTES))
            for number in range(lines):
                b.prefetch(e, e.add(ahead, number * line))
            return
        sharing = min(kernel.row_groups, lines)
        share, chunks = -(-lines // sharing), kernel.problem.depth // kernel.block.steps
        group = e.minimum(self.row_group, sharing - 1)
        first = e.mul(e.add(e.mul(group, chunks), chunk), share * line)
        following = e.minimum(e.add(self.column_block, 1), kernel.column_blocks - 1)
        begin = e.add(self.tiles[0].bases[1], e.mul(following, kernel.problem.block_stride))
        ahead = e.add(begin, first)
        for number in range(share):
            b.prefetch(e, e.add(ahead, number * line), level=2)

    def _prefetch_result(self, first: Index, rows: int, count: int) -> None:
        """Asks for rows of each tile from row `first` on, to write them; for the last one again
        where there are no more."""
        e, problem = self.e, self.kernel.problem
        for row in range(rows):
            number = e.minimum(e.add(first, row), self.kernel.block.rows - 1)
            line = e.mul(number, problem.row.strides[-1])
            for tile in self.tiles:
                for column in range(count):
                    at = e.add(self._result_at(tile, column), line)
                    self.buffers[-2].prefetch(e, at, to_write=True)

    def _result_at(self, tile: _RowTile, column: int) -> Index:
        """Where the first row of a register belongs."""
        vector = self.e.add(self.e.mul(self.column_block, self.kernel.block.column_tiles), column)
        return self.e.add(tile.bases[-1], self.e.mul(vector, self.kernel.problem.vector_steps[-1]))

    def _unrolled(self, count: int, products: int, body: Callable[[Index], None]) -> None:
        """One after the other if there is more to do than multiplying."""
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
        """Adds a chunk of steps to all sums, the operand of fewer tiles being held."""
        e, kernel, problem = self.e, self.kernel, self.kernel.problem
        registers = kernel.registers
        a, b = self.buffers[problem.a], self.buffers[problem.b]
        a_row = problem.row.strides[0]

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

    def _store(self, tile: _RowTile, place: int, column: int, register: int) -> None:
        """The sums of a register; known rows of the result are written again as they are."""
        e, kernel, problem = self.e, self.kernel, self.kernel.problem
        width = kernel.block.column_tiles
        if self.before is None:
            at = self._result_at(tile, column)
            amx.store(e, register, self.buffers[-2], at, problem.row.strides[-1])
        else:
            first = (place * kernel.block.rows * width + column) * amx.COLUMNS
            at = e.add(self.sums_at, first)
            amx.store(e, register, self.buffers[-1], at, width * amx.COLUMNS)


@dataclass(frozen=True)
class _StoredSums:
    """Sums of a block in scratch memory, from `begin` on, before their epilogue.

    Of each tile, rows before its end in `ends` are stored.
    """

    kernel: AmxContraction
    e: Emitter
    buffers: Sequence[Buffer]
    tiles: Sequence[_RowTile]
    ends: Sequence[Index]
    begin: Index
    column_block: Index

    @cached_property
    def _stores(self) -> list[TileStore]:
        """Of row 0 of each tile, with what all rows of it share loaded."""
        e, kernel, problem = self.e, self.kernel, self.kernel.problem
        width = kernel.block.column_tiles
        first = e.mul(self.column_block, width)
        masks = tile_masks(e, problem.columns, self.column_block, width)
        epilogue = Epilogue(
            problem.anchor, problem.points, problem.row.strides[2:], problem.vector_steps
        )
        found = [
            TileStore(epilogue, e, self.buffers[:-1], tile.bases[2:], first, masks)
            for tile in self.tiles
        ]
        for store in found:
            store.load_shared()
        return found

    def prepare(self) -> None:
        """Loads what rows share here, where it is outside of loops."""
        assert self._stores

    def store(self, first: Index, count: int) -> None:
        """`count` rows of each tile from row `first` on, where they exist and are not known.

        The last block of columns has fewer.
        """
        whole, rest = divmod(self.kernel.problem.columns, self.kernel.columns)
        self.e.branch(
            self.column_block if whole and rest else 0,
            whole,
            lambda: self._store(first, count, self.kernel.columns),
            lambda: self._store(first, count, rest),
        )

    def _store(self, first: Index, count: int, columns: int) -> None:
        e, block = self.e, self.kernel.block
        vectors = range(-(-columns // amx.COLUMNS))
        masks = [e.tail_mask(columns - number * amx.COLUMNS) for number in vectors]
        end = e.add(first, count)
        for place, (tile, last) in enumerate(zip(self.tiles, self.ends, strict=True)):

            def row(number: Index, place: int = place) -> None:
                line = e.add(number, place * block.rows)
                at = e.add(self.begin, e.mul(line, block.column_tiles * amx.COLUMNS))
                sums = [self._sums(e.add(at, n * amx.COLUMNS)) for n in vectors]
                self._stores[place].row(number, masks).store([sums])

            e.loop(e.maximum(first, tile.known), e.minimum(end, last), 1, row)

    def _sums(self, at: Index) -> Value:
        """A vector of the sums in scratch memory."""
        sums = self.buffers[-1].load(self.e, at)
        if self.kernel.product.is_float:
            return sums
        return self.e.insert(vector.BitcastOp(sums, self.e.vector_type(i32)))
