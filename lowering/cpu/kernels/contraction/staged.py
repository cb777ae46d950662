"""int8 products whose A is staged: a block of rows at a time, as the machine multiplies them.

Staged rows are in scratch memory that stays in a core's cache, and are then read for all columns of
B, or for a part of them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.dims import LoopDim
from braid.dialects.braid.buffer import aligned
from braid.lowering.cpu.kernels.contraction.arithmetic import ByteArithmetic
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel, TileWriter
from braid.lowering.cpu.kernels.contraction.microkernel import Tile
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index


@dataclass(frozen=True)
class RowBlock:
    """The rows of A that are staged at once: `lines` of the last outer dim, `rows` of the row dim.

    `lines` are 1 where `rows` are not all of the row dim, or the last outer dim changes B.
    """

    lines: int
    rows: int


@dataclass(frozen=True)
class Piece:
    """The part of A that a block of rows reads: contiguous bytes, for each point of `far`.

    `far` are dims of the reduction whose steps are longer than `span` bytes.
    """

    span: int
    far: tuple[LoopDim, ...]

    @staticmethod
    def of(nest: Contraction, block: RowBlock, step: int) -> "Piece":
        """Return how A is staged, by its strides; a step of K reads `step` bytes."""
        span = step + (block.rows - 1) * nest.row.strides[0]
        if block.lines > 1:
            span += (block.lines - 1) * nest.outer[-1].strides[0]
        far: list[LoopDim] = []
        for dim in sorted(nest.reduction, key=lambda dim: dim.strides[0]):
            if dim.strides[0] > span:
                far.append(dim)
            else:
                span += (dim.extent - 1) * dim.strides[0]
        return Piece(span, tuple(far))

    @property
    def count(self) -> int:
        """Number of pieces of a block."""
        return math.prod(dim.extent for dim in self.far)


@dataclass(frozen=True)
class StagedContraction(ABC):
    """Emits `nest`, which is not framed, a block of rows and a part of the columns at a time.

    The last buffer is scratch memory of f32 elements, which hold the rows of A for each step.
    """

    nest: Contraction
    tile: Tile
    lanes: int
    block: RowBlock
    arithmetic: ByteArithmetic

    @property
    @abstractmethod
    def parts(self) -> int:
        """Into how many parts the columns are divided."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps of a piece in scratch memory."""

    @property
    @abstractmethod
    def unit(self) -> int:
        """Bytes of which the distances of rows in A are multiples."""

    @abstractmethod
    def staged(self, stride: int) -> int:
        """Return steps in scratch memory for bytes in A."""

    @abstractmethod
    def columns(self, part: Index, e: Emitter) -> tuple[Index, Index]:
        """Return the first block of columns of a part, and the one after the last."""

    @abstractmethod
    def stage(
        self, e: Emitter, tensors: Sequence[Buffer], scratch: Buffer, begin: Index, part: Index
    ) -> None:
        """Store the pieces of A from byte `begin` on in scratch memory, for a part of B."""

    @property
    def scratch_bytes(self) -> int:
        """Bytes for the staged rows of a block; their last vector may be written completely."""
        return aligned(4 * (self.steps * self.piece.count + self.lanes))

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Outer dims, the last one in blocks, blocks of the row dim, parts of the columns."""
        extents = [dim.extent for dim in self.nest.outer]
        if extents:
            extents[-1] = -(-extents[-1] // self.block.lines)
        return (*extents, -(-self.nest.row.extent // self.block.rows), self.parts)

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    @cached_property
    def piece(self) -> Piece:
        """The piece of A that a block of rows reads."""
        return Piece.of(self.nest, self.block, self.arithmetic.group)

    @property
    def column_blocks(self) -> int:
        """Blocks of columns of all parts."""
        return -(-self.nest.columns // (self.tile.vectors * self.lanes))

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Stage a block of rows, and multiply it by a part of the columns."""
        *outer, row_block, part = e.coordinates(index, self.grid_extents)
        if outer:
            outer[-1] = e.mul(outer[-1], self.block.lines)
        first_row = e.mul(row_block, self.block.rows)
        nest = self.nest
        bases = [
            e.add(
                e.dot(outer, [dim.strides[tensor] for dim in nest.outer]),
                e.mul(first_row, nest.row.strides[tensor]),
            )
            for tensor in range(len(nest.row.strides))
        ]
        *tensors, scratch = buffers
        # The staged rows of the last block begin earlier, so that they end where A does.
        begin_a = e.minimum(bases[0], self._last_begin)
        ahead = self._ahead(e, e.sub(bases[0], begin_a))
        rows_left = e.sub(nest.row.extent, first_row)
        self.stage(e, tensors, scratch, e.add(begin_a, nest.a_start), part)
        tensors[nest.a] = scratch
        begin, end = self.columns(part, e)

        def columns(column_block: Index) -> None:
            if self.block.lines == 1:
                self._line(e, tensors, [ahead, *bases[1:]], column_block, rows_left)
                return
            step = nest.outer[-1].strides
            left = e.sub(nest.outer[-1].extent, outer[-1])

            def line(number: Index) -> None:
                own = [e.add(ahead, e.mul(number, self.staged(step[0])))]
                own += [
                    e.add(base, e.mul(number, stride))
                    for base, stride in zip(bases[1:], step[1:], strict=True)
                ]
                self._line(e, tensors, own, column_block, nest.row.extent)

            e.loop(0, e.minimum(self.block.lines, left), 1, line)

        e.loop(begin, end, 1, columns)

    def each_piece(self, e: Emitter, begin: Index, store: Callable[[Index, Index], None]) -> None:
        """Call `store` with the first byte of each piece, and the place of its first step."""
        far = self.piece.far
        extents = [dim.extent for dim in far]

        def piece(number: Index) -> None:
            places = e.coordinates(number, extents[::-1])[::-1]
            first = e.add(begin, e.dot(places, [dim.strides[0] for dim in far]))
            store(first, e.mul(number, self.steps))

        e.loop(0, self.piece.count, 1, piece)

    def _ahead(self, e: Emitter, distance: Index) -> Index:
        """Return the steps from staged rows to the first row of a block, this many bytes in A."""
        unit = self.unit
        return e.mul(e.divmod(distance, unit)[0], self.staged(unit))

    def _line(
        self,
        e: Emitter,
        tensors: Sequence[Buffer],
        bases: Sequence[Index],
        column_block: Index,
        rows_left: Index,
    ) -> None:
        """Compute the tiles of a block in one row of outputs, with `rows_left` outputs left."""
        rows, extent = self.tile.rows, self.nest.row.extent
        strides = self._kernel.nest.row.strides

        def tile(first: Index, count: int) -> None:
            own = [e.add(b, e.mul(first, s)) for b, s in zip(bases, strides, strict=True)]
            TileWriter(self._kernel, e, tensors, own, column_block, count).write()

        count = e.minimum(self.block.rows, rows_left)
        tiles, rest = e.divmod(count, rows)
        e.loop(0, tiles, 1, lambda number: tile(e.mul(number, rows), rows))
        left = extent % rows
        if left:
            e.loop(0, e.minimum(rest, 1), 1, lambda _: tile(e.mul(tiles, rows), left))

    @cached_property
    def _last_begin(self) -> int:
        """The offset in A of the last of the pieces that end within A."""
        near = [dim for dim in self.nest.reduction if dim not in self.piece.far]
        dims = (*self.nest.outer, self.nest.row, *near)
        end = self.arithmetic.group + sum((dim.extent - 1) * dim.strides[0] for dim in dims)
        return end - self.piece.span

    @cached_property
    def _kernel(self) -> ContractionKernel:
        """Return the nest with A in scratch memory, whose elements are steps."""
        nest, place = self.nest, self.steps
        far: dict[LoopDim, int] = {}
        for dim in self.piece.far:
            far[dim] = place
            place *= dim.extent
        reduction = [
            replace(dim, strides=(far.get(dim, self.staged(dim.strides[0])), dim.strides[1]))
            for dim in nest.reduction
        ]
        row_stride, *others = nest.row.strides
        row = replace(nest.row, strides=(self.staged(row_stride), *others))
        stored = replace(nest, row=row, reduction=tuple(reduction), a_start=0)
        return ContractionKernel(stored, self.tile, self.lanes, True, self.arithmetic)
