"""The code of products by AMX: blocks of tile registers with an elementwise epilogue.

A block of `row_tiles` × `column_tiles` sums stays in registers while the reduction passes; then it
is stored: to the result where there is no epilogue, else to scratch memory, where the epilogue
reads it by vectors. B is read as it is packed, A where it lies.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import i32

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.emitted_dialects import vector
from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx.instructions import TileProduct
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.lowering.cpu.kernels.groups.loop_dims import LoopDim
from braid.lowering.cpu.kernels.pointwise.epilogue import Epilogue, TileStore

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
    def scratch_bytes(self) -> int:
        """Of the sums, and what registers are configured by."""
        return self.products * self.rows * _ROW_BYTES + 64


_ROW_BYTES = 64

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
    """Whether the result is the sums themselves, in rows of neighbouring columns."""
    return (
        problem.points.results == (problem.anchor,) and problem.vector_steps[-1] == amx.COLUMNS
    )


@dataclass(frozen=True)
class AmxContraction:
    """Emits a contraction with one block per grid iteration.

    `problem.block_stride` is that of blocks of B as wide as `block`. `columns_outside` says that
    a block of B is used for all rows before the next one.
    """

    problem: Contraction
    block: Block
    columns_outside: bool
    product: TileProduct

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
        """See `Block`."""
        return self.block.scratch_bytes

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
        at = (self.scratch_bytes - 64) // 4
        amx.configure(e, buffers[-1], at, [shapes[number] for number in sorted(shapes)])

    def end(self, e: Emitter, buffers: Sequence[Buffer]) -> None:
        """Gives all registers back."""
        amx.release(e)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """One block; the tiles of rows that are left at the end have a block of their own."""
        *batch, first, second = e.coordinates(index, self.grid_extents)
        column_block, group = (first, second) if self.columns_outside else (second, first)
        whole, rest = divmod(self._tiles, self.block.row_tiles)
        first_tile = e.mul(group, self.block.row_tiles)

        def emit(count: int) -> None:
            tiles = [self._row_tile(e, batch, e.add(first_tile, n)) for n in range(count)]
            _BlockWriter(self, e, buffers, tiles, column_block, group).write()

        if rest == 0:
            emit(self.block.row_tiles)
        elif whole == 0:
            emit(rest)
        else:
            e.branch(group, whole, lambda: emit(self.block.row_tiles), lambda: emit(rest))

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
    """One block of some tiles of rows and a block of columns."""

    kernel: AmxContraction
    e: Emitter
    buffers: Sequence[Buffer]
    tiles: Sequence[_RowTile]
    column_block: Index
    row_group: Index

    def write(self) -> None:
        """Adds up, applies the epilogue and stores; the last columns are fewer."""
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
        whole = columns // amx.COLUMNS if stores_sums(self.kernel.problem) else 0
        for place, tile in enumerate(self.tiles):
            for column in range(whole):
                self._store_sums(tile, place * count + column, column)
            for column in range(whole, count):
                at = (place * self.kernel.block.rows * count + column) * amx.COLUMNS
                amx.store(e, place * count + column, self.buffers[-1], at, count * amx.COLUMNS)
        if whole == count:
            return
        masks = [e.tail_mask(columns - number * amx.COLUMNS) for number in range(count)]
        for place, tile in enumerate(self.tiles):
            self._store(tile, place * self.kernel.block.rows * count * amx.COLUMNS, masks, whole)

    def _reduce(self, count: int) -> None:
        """The loops of the reduction; the innermost one is over chunks of steps."""
        e, kernel, problem = self.e, self.kernel, self.kernel.problem
        group = kernel.product.group
        outer, last = innermost(problem, group)
        b_row = kernel.columns * group
        a_chunk, b_chunk = kernel.block.steps * group, kernel.block.steps * b_row
        base = e.add(self.tiles[0].bases[1], e.mul(self.column_block, problem.block_stride))

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

    def _unrolled(self, count: int, products: int, body: Callable[[Index], None]) -> None:
        e, unroll = self.e, max(1, _UNROLLED_PRODUCTS // products)
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

    def _store_sums(self, tile: _RowTile, register: int, column: int) -> None:
        """A register to the result; rows that are known are written again as they are."""
        problem, result = self.kernel.problem, self.buffers[-2]
        vector = self.e.add(self.e.mul(self.column_block, self.kernel.block.column_tiles), column)
        at = self.e.add(tile.bases[-1], self.e.mul(vector, problem.vector_steps[-1]))
        amx.store(self.e, register, result, at, problem.row.strides[-1])

    def _store(
        self, tile: _RowTile, begin: int, masks: Sequence[Value | None], first: int
    ) -> None:
        """The rows of a tile whose sums are in scratch memory from `begin` on.

        `masks` are those of its vectors, of which the ones before `first` are stored already.
        """
        e, kernel, problem = self.e, self.kernel, self.kernel.problem
        first_vector = e.add(e.mul(self.column_block, kernel.block.column_tiles), first)
        epilogue = Epilogue(
            problem.anchor, problem.points, problem.row.strides[2:], problem.vector_steps
        )

        def row(number: Index) -> None:
            line = e.add(begin, e.mul(number, len(masks) * amx.COLUMNS))
            places = range(first, len(masks))
            sums = [self._sums(e.add(line, n * amx.COLUMNS)) for n in places]
            bases = [
                e.add(base, e.mul(number, stride))
                for base, stride in zip(tile.bases[2:], problem.row.strides[2:], strict=True)
            ]
            left = masks[first:]
            TileStore(epilogue, e, self.buffers[:-1], bases, first_vector, left).store([sums])

        e.loop(tile.known, kernel.block.rows, 1, row)

    def _sums(self, at: Index) -> Value:
        """A vector of the sums in scratch memory."""
        sums = self.buffers[-1].load(self.e, at)
        if self.kernel.product.is_float:
            return sums
        return self.e.insert(vector.BitcastOp(sums, self.e.vector_type(i32)))
