"""int8 matmuls whose operands are both computed: a part of B is packed into words, then rows of A.

Packed B is in scratch memory that stays in a core's cache, in blocks of columns as wide as a tile;
all rows read it. Each thread makes what its rows need.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType, f32, i1, i32

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.dims import LoopDim
from braid.dialects.braid.buffer import aligned
from braid.lowering.common.emitted_dialects import vector
from braid.lowering.cpu.kernels.contraction.arithmetic import bitcast, i8
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel, TileWriter
from braid.lowering.cpu.kernels.contraction.microkernel import Tile
from braid.lowering.cpu.kernels.contraction.words import UnpackedArithmetic, WordArithmetic
from braid.lowering.cpu.unit.kernel_function import Prepared
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import transposed

_ROWS = 64
"""Rows of A at a time: they and a block of columns are in the first two caches."""

_FEW_ROWS = 4
"""Rows for which B is not packed: one row times 12 matrices of 512 x 512 bytes takes 45 us instead
of 100, four times 768 x 512 11 instead of 15."""

_ITERATIONS = 8
"""The least iterations of a grid, which threads share."""


@dataclass(frozen=True)
class PackedContraction:
    """Emits `nest`, whose operands are bytes that lie row by row, or B's column by column.

    Its reduction counts bytes. The last of the buffers is scratch of f32.
    """

    nest: Contraction
    tile: Tile
    unit: VectorUnit
    arithmetic: WordArithmetic

    @property
    def steps(self) -> int:
        """Words of a row of A, and of a column of B."""
        return -(-self.nest.depth // self.arithmetic.step)

    @property
    def block(self) -> int:
        """Columns of a tile."""
        return self.tile.vectors * self.unit.lanes

    @property
    def rows(self) -> int:
        """Rows of an iteration: whole tiles, or all."""
        whole = max(1, _ROWS // self.tile.rows) * self.tile.rows
        return min(whole, self.nest.row.extent)

    @property
    def parts(self) -> int:
        """Into how many parts columns are divided."""
        return -(-self._blocks // self._part_blocks)

    @property
    def _part_blocks(self) -> int:
        """Blocks of a part, which fit the cache, and are few enough that threads have some."""
        fitting = max(1, self.unit.cache_bytes // (8 * self._block_words))
        wanted = -(-_ITERATIONS // math.prod(self._others))
        return min(fitting, max(1, self._blocks // wanted))

    @property
    def _others(self) -> tuple[int, ...]:
        """Outer dims, and blocks of rows."""
        row_blocks = -(-self.nest.row.extent // self.rows)
        return (*(dim.extent for dim in self.nest.outer), row_blocks)

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Outer dims, parts of the columns, blocks of rows."""
        *outer, row_blocks = self._others
        return (*outer, self.parts, row_blocks)

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch memory for the words of rows, then for those of a part of the
        columns."""
        return aligned(4 * (self._columns_begin + self._part_blocks * self._block_words))

    @property
    def prepared(self) -> Prepared:
        """A part of the columns, for all blocks of rows."""
        return Prepared(self.grid_extents[-1], self._pack_part)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Multiply a block of rows with a part of the columns."""
        *outer, part, row_block = e.coordinates(index, self.grid_extents)
        first_row = e.mul(row_block, self.rows)
        nest = self.nest
        bases = [
            e.add(self._outer_base(e, outer, tensor), e.mul(first_row, stride))
            for tensor, stride in enumerate(nest.row.strides)
        ]
        *tensors, scratch = buffers
        count = e.minimum(self.rows, e.sub(nest.row.extent, first_row))
        if self.arithmetic.stages:
            self._stage(e, tensors[nest.a], scratch, e.add(bases[0], nest.a_start), count)
            tensors[nest.a], bases[0] = scratch, 0
        tensors[nest.b] = scratch
        begin, end = self._part(e, part)

        def columns(block: Index) -> None:
            bases[1] = self._words_of(e, e.sub(block, begin))
            self._tiles(e, tensors, bases, block, count)

        e.loop(begin, end, 1, columns)

    def _tiles(
        self,
        e: Emitter,
        tensors: Sequence[Buffer],
        bases: Sequence[Index],
        block: Index,
        count: Index,
    ) -> None:
        """Compute all tiles of a block of columns; remaining rows have a tile of their own."""
        rows, kernel = self.tile.rows, self._kernel

        def tile(first: Index, own_rows: int) -> None:
            strides = kernel.nest.row.strides
            own = [e.add(b, e.mul(first, s)) for b, s in zip(bases, strides, strict=True)]
            TileWriter(kernel, e, tensors, own, block, own_rows).write()

        tiles, rest = e.divmod(count, rows)
        e.loop(0, tiles, 1, lambda number: tile(e.mul(number, rows), rows))
        if left := self.nest.row.extent % rows:
            e.loop(0, e.minimum(rest, 1), 1, lambda _: tile(e.mul(tiles, rows), left))

    def _stage(
        self, e: Emitter, source: Buffer, scratch: Buffer, begin: Index, count: Index
    ) -> None:
        """Pack rows of A into words in scratch memory, vector by vector."""
        step = self.unit.lanes
        whole, rest = divmod(self.nest.depth, step * self.arithmetic.step)

        def row(number: Index) -> None:
            own = e.add(begin, e.mul(number, self.nest.row.strides[0]))
            to = e.mul(number, self.steps)

            def words(chunk: Index, bytes_: int) -> None:
                at = e.add(own, e.mul(chunk, step * self.arithmetic.step))
                loaded = _load(e, source, at, step * self.arithmetic.step, bytes_)
                target = e.add(to, e.mul(chunk, step))
                scratch.store(e, self.arithmetic.of_row(e, loaded), target)

            e.loop(0, whole, 1, lambda chunk: words(chunk, step * self.arithmetic.step))
            if rest:
                words(whole, rest)

        e.loop(0, count, 1, row)

    def _pack_part(self, e: Emitter, buffers: Sequence[Buffer], run: Index) -> None:
        """Pack the words of a part of the columns of B, block by block."""
        *outer, part = e.coordinates(run, self.grid_extents[:-1])
        base = self._outer_base(e, outer, 1)
        begin, end = self._part(e, part)
        whole, rest = divmod(self.nest.columns, self.block)

        def block(number: Index) -> None:
            source = e.add(base, e.mul(number, self.nest.block_stride))
            target = self._words_of(e, e.sub(number, begin))

            def pack(columns: int) -> None:
                self._pack_block(e, buffers, source, target, columns)

            e.branch(
                number if whole and rest else 0,
                whole,
                lambda: pack(self.block),
                lambda: pack(rest),
            )

        e.loop(begin, end, 1, block)

    def _pack_block(
        self, e: Emitter, buffers: Sequence[Buffer], source: Index, target: Index, columns: int
    ) -> None:
        """Pack the words of a block of columns, and the initial values of its sums."""
        scratch, lanes, arithmetic = buffers[-1], self.unit.lanes, self.arithmetic
        vectors = range(-(-columns // lanes))
        by_rows = self.nest.column_stride == 1
        words_of = self._words_of_rows if by_rows else self._words_of_columns

        def pack(place: Index, numbers: int, sums: Sequence[Value]) -> Sequence[Value]:
            result = list(sums)
            for v in vectors:
                at = e.add(source, v * lanes * self.nest.column_stride)
                count = min(lanes, columns - v * lanes)
                words = words_of(e, buffers[self.nest.b], at, place, numbers, count)
                for step, word in enumerate(words):
                    ahead = e.add(e.mul(e.add(place, step), self.block), v * lanes)
                    scratch.store(e, word, e.add(target, ahead))
                    if arithmetic.turned:
                        result[v] = arithmetic.without_turn(e, bitcast(e, word, i32), result[v])
            return result

        together = 1 if by_rows else lanes
        whole, rest = divmod(self.nest.depth, together * arithmetic.step)
        numbers = together * arithmetic.step
        zeros = [arithmetic.zero(e, scratch)] * len(vectors) if arithmetic.turned else []
        sums = e.carry(
            0, whole * together, together, zeros, lambda place, sums: pack(place, numbers, sums)
        )
        if rest:
            sums = pack(whole * together, rest, sums)
        for v, sum in enumerate(sums):
            start = e.sub(e.add(target, v * lanes), self.block)
            scratch.store(e, bitcast(e, e.apply(arith.SubiOp, zeros[v], sum), f32), start)

    def _words_of_rows(
        self, e: Emitter, b: Buffer, at: Index, place: Index, numbers: int, columns: int
    ) -> Sequence[Value]:
        """Return the words of one step of K, whose first `numbers` rows exist."""
        (reduced,), step, lanes = self.nest.reduction, self.arithmetic.step, self.unit.lanes
        first = e.add(at, e.mul(e.mul(place, step), reduced.strides[1]))
        rows = [
            _load(e, b, e.add(first, row * reduced.strides[1]), lanes, columns)
            for row in range(numbers)
        ]
        zero = e.constant(0, VectorType(i8, [lanes]))
        return [self.arithmetic.of_rows(e, [*rows, *[zero] * (step - numbers)])]

    def _words_of_columns(
        self, e: Emitter, b: Buffer, at: Index, place: Index, numbers: int, columns: int
    ) -> Sequence[Value]:
        """Return the words of as many steps of K as a vector has lanes, of which `numbers` elements
        exist.
        """
        step, lanes = self.arithmetic.step, self.unit.lanes
        first = e.add(at, e.mul(place, step))
        words = [
            self.arithmetic.of_column(
                e,
                _load(e, b, e.add(first, c * self.nest.column_stride), step * lanes, numbers),
            )
            for c in range(columns)
        ]
        return transposed(e, words)[: -(-numbers // step)]

    def _outer_base(self, e: Emitter, outer: Sequence[Index], tensor: int) -> Index:
        return e.dot(outer, [dim.strides[tensor] for dim in self.nest.outer])

    def _part(self, e: Emitter, part: Index) -> tuple[Index, Index]:
        """Return the first block of columns of a part, and the one after its last."""
        length = self._part_blocks
        begin = e.mul(part, length)
        return begin, e.minimum(e.add(begin, length), self._blocks)

    def _words_of(self, e: Emitter, block: Index) -> Index:
        """Return where the words of this block of a part begin."""
        first = self._columns_begin + self.block * self.arithmetic.turned
        return e.add(first, e.mul(block, self._block_words))

    @property
    def _blocks(self) -> int:
        """Blocks of columns of all parts."""
        return -(-self.nest.columns // self.block)

    @property
    def _block_words(self) -> int:
        """Words of a block of columns, with the initial values of sums."""
        return self.block * (self.steps + self.arithmetic.turned)

    @property
    def _columns_begin(self) -> int:
        """Words of rows; their last vector is written completely."""
        if not self.arithmetic.stages:
            return 0
        return aligned(4 * (self.rows * self.steps + self.unit.lanes)) // 4

    @cached_property
    def _kernel(self) -> ContractionKernel:
        """Return the nest on words, in blocks whose places are said for each tile."""
        nest, stages = self.nest, self.arithmetic.stages
        row = nest.row
        if stages:
            row = replace(row, strides=(self.steps, *row.strides[1:]))
        step = 1 if stages else self.arithmetic.step
        on_words = replace(
            nest,
            row=row,
            reduction=(LoopDim(self.steps, (step, self.block)),),
            block_stride=0,
            columns_padded=True,
            a_start=0 if stages else nest.a_start,
        )
        return ContractionKernel(on_words, self.tile, self.unit.lanes, True, self.arithmetic)


def unpacked_kernel(
    nest: Contraction, lanes: int, sums: int, words: WordArithmetic
) -> ContractionKernel | None:
    """Return the kernel of few rows that makes words of B as it multiplies them, with this many
    `sums`.

    It reads longer pieces of rows than what packs. None where rows are many, or A has to be in
    words as well.
    """
    rows = nest.row.extent
    if rows > _FEW_ROWS or words.stages or nest.column_stride != 1:
        return None
    pitch = nest.reduction[0].strides[1]
    vectors = min(max(1, sums // rows), -(-nest.columns // lanes))
    steps = LoopDim(nest.depth // words.step, (words.step, words.step * pitch))
    on_bytes = replace(nest, reduction=(steps,), block_stride=vectors * lanes)
    tile = Tile(rows, vectors, 1)
    return ContractionKernel(on_bytes, tile, lanes, True, UnpackedArithmetic(words, pitch))


def _load(e: Emitter, source: Buffer, at: Index, width: int, count: int) -> Value:
    """Load `width` bytes; those from `count` on are 0 and not read."""
    type = VectorType(i8, [width])
    if count == width:
        return e.make(vector.LoadOp, [source.ref, e.index(at)], type)
    mask = e.insert(vector.CreateMaskOp([e.index(count)], VectorType(i1, [width])))
    zero = e.constant(0, type)
    return e.insert(vector.MaskedLoadOp(source.ref, [e.index(at)], mask, zero))
