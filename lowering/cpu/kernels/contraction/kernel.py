"""The code of GEMM and convolution: tiles of C = A · B with an elementwise epilogue."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, cast

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.dims import KnownOrOpen
from braid.lowering.cpu.kernels.contraction.arithmetic import FLOATS, Arithmetic
from braid.lowering.cpu.kernels.contraction.microkernel import (
    Part,
    Tile,
    TileOperands,
    accumulate,
)
from braid.lowering.cpu.kernels.contraction.tile_runs import TileRun, elements_at, tile_runs
from braid.lowering.cpu.kernels.pointwise.epilogue import Epilogue, TileStore
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.lowering.emit.positions import position_of
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


@dataclass(frozen=True)
class ContractionKernel(Generic[KnownOrOpen]):
    """Emits a contraction with one tile per grid iteration.

    `columns_outside` says that a column block of B is used for all rows before the next one.
    """

    nest: Contraction[KnownOrOpen]
    tile: Tile
    lanes: int
    columns_outside: bool
    arithmetic: Arithmetic = FLOATS

    @property
    def block(self) -> int:
        """Columns of a tile."""
        return self.tile.vectors * self.lanes

    @property
    def grid_extents(self) -> tuple[Extent, ...]:
        """Outer dims that change B, and then column blocks and other dims in their order."""
        blocks = -(-self.nest.columns // self.block)
        row_tiles = -(-self.nest.row.extent // self.tile.rows)
        outer: list[Extent] = [dim.extent for dim in self.nest.outer]
        batches = self._batches
        free = (*outer[batches:], row_tiles)
        inner = (blocks, *free) if self.columns_outside else (*free, blocks)
        return (*outer[:batches], *inner)

    @property
    def grid(self) -> KnownOrOpen:
        """Iterations of the grid."""
        return cast(KnownOrOpen, product_of(self.grid_extents))

    @property
    def reads_rows_once(self) -> bool:
        """Return whether rows of A are contiguous in memory, and all columns take them at once."""
        nest, group = self.nest, self.arithmetic.group
        is_dense = nest.row.strides[0] == nest.depth * group
        is_dense = is_dense and [dim.strides[0] for dim in nest.reduction] == [group]
        rows = nest.row.extent
        are_many = not isinstance(rows, int) or rows > self.tile.rows
        return is_dense and not self.columns_outside and are_many

    @property
    def _batches(self) -> int:
        """The number of leading outer dims up to the last one that changes B."""
        changing = [i for i, dim in enumerate(self.nest.outer) if dim.strides[1] != 0]
        return changing[-1] + 1 if changing else 0

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Compute one tile; the rows that are left at the end have a tile of their own."""
        coordinates = e.coordinates(index, self.grid_extents)
        column_block = coordinates.pop(self._batches if self.columns_outside else -1)
        *outer, row_tile = coordinates
        nest = self.nest
        # The first elements of A, B, the epilogue's leaves and C for these outer dims, then for the
        # tile's first row.
        bases = [
            e.dot(outer, [dim.strides[tensor] for dim in nest.outer])
            for tensor in range(len(nest.row.strides))
        ]
        first = e.mul(row_tile, self.tile.rows)
        bases = self._advanced(e, bases, first)
        bases[0] = e.add(bases[0], nest.a_start)
        # B may be a slab of a table, whose number is an element of a tensor of indices.
        if (slabs := nest.slabs) is not None:
            index = buffers[slabs.indices].load_scalar(e, bases[1])
            slab = position_of(e, index, slabs.count, slabs.is_unsigned)
            bases[1] = e.mul(slab, slabs.stride)

        bounds = self._bounds(e, outer)
        if not isinstance(nest.row.extent, int):
            self._open_rows(e, buffers, bases, column_block, row_tile, Part(bounds))
            return

        # Tiles of rows come in runs of equal code, such as whole tiles and a smaller last one; the
        # run is chosen by the tile's number.
        def emit(runs: Sequence[TileRun], tiles: int) -> None:
            run, others = runs[0], runs[1:]
            tiles += run.count

            def write() -> None:
                part = Part(bounds, run.passes)
                TileWriter(self, e, buffers, bases, column_block, run.rows, part).write()

            if others:
                e.branch(row_tile, tiles, write, lambda: emit(others, tiles))
            else:
                write()

        emit(tile_runs(nest.row.extent, self.tile.rows, nest.row_window), 0)

    def _open_rows(
        self,
        e: Emitter,
        buffers: Sequence[Buffer],
        bases: Sequence[Index],
        column_block: Index,
        row_tile: Index,
        part: Part,
    ) -> None:
        """Emit a whole tile, or the remaining rows: tiles whose rows are powers of two.

        Windows along the row dim read the zeros around an image; `part` leaves out those of
        other dims.
        """
        whole, left = e.divmod(self.nest.row.extent, self.tile.rows)

        def write(rows: int, first: Index) -> None:
            own = self._advanced(e, bases, first)
            TileWriter(self, e, buffers, own, column_block, rows, part).write()

        def rest() -> None:
            for bit in reversed(range((self.tile.rows - 1).bit_length())):
                rows = 1 << bit
                remainder = e.divmod(left, 2 * rows)[1]
                first = e.sub(left, remainder)
                e.branch(remainder, rows, lambda: None, partial(write, rows, first))

        e.branch(row_tile, whole, partial(write, self.tile.rows, 0), rest)

    def _advanced(self, e: Emitter, bases: Sequence[Index], rows: Index) -> list[Index]:
        """Return the places of A, B, the leaves and C that lie `rows` rows further."""
        strides = self.nest.row.strides
        return [e.add(b, e.mul(rows, s)) for b, s in zip(bases, strides, strict=True)]

    def _bounds(self, e: Emitter, outer: Sequence[Index]) -> tuple[tuple[Index, Index], ...]:
        """Return the bounds of the reduction's dims before the last framed one, and its own if it
        is outer.
        """
        nest = self.nest
        bounds: list[tuple[Index, Index]] = []
        for framed in nest.framed:
            inner = nest.reduction[len(bounds) : framed.reduced]
            bounds += [(0, dim.extent) for dim in inner]
            if framed.dim < len(outer):
                bounds.append(elements_at(e, framed.window, outer[framed.dim]))
        return tuple(bounds)


@dataclass(frozen=True)
class TileWriter(Generic[KnownOrOpen]):
    """One tile of `rows` rows, whose first row is at `bases` of A, B, the leaves and C.

    Of its products, only `part` is made.
    """

    kernel: ContractionKernel[KnownOrOpen]
    e: Emitter
    buffers: Sequence[Buffer]
    bases: Sequence[Index]
    column_block: Index
    rows: int
    part: Part = field(default_factory=Part)

    def write(self) -> None:
        """Accumulate the tile, apply the epilogue and store; the last columns are fewer."""
        whole, rest = self.e.divmod(self.kernel.nest.columns, self.kernel.block)
        self.e.branch(
            0 if whole == 0 or rest == 0 else self.column_block,
            whole,
            lambda: self._write(self.kernel.block),
            lambda: self._write(rest),
        )

    def _write(self, columns: Index) -> None:
        """Write `columns` columns; if their number is unknown, some vectors may be empty."""
        e, kernel, nest = self.e, self.kernel, self.kernel.nest
        row_strides = nest.row.strides
        is_known = isinstance(columns, int)
        vectors = -(-columns // e.lanes) if is_known else kernel.tile.vectors
        left = [e.sub(columns, vector * e.lanes) for vector in range(vectors)]
        masks = [e.tail_mask(count) for count in left]
        existing = [None] * vectors if nest.columns_padded else masks
        operands = TileOperands(
            self.buffers[nest.a],
            self.bases[0],
            row_strides[0],
            self.buffers[nest.b],
            e.add(self.bases[1], e.mul(self.column_block, nest.block_stride)),
            [kernel.arithmetic.mask(e, *own) for own in zip(left, existing, strict=True)],
            kernel.arithmetic,
            kernel.reads_rows_once,
        )
        tile = Tile(self.rows, vectors, kernel.tile.unroll)
        first_vector = e.mul(self.column_block, kernel.tile.vectors)
        epilogue = Epilogue(
            nest.anchor,
            nest.points,
            row_strides[2:],
            nest.vector_steps,
        )
        store = TileStore(epilogue, e, self.buffers, self.bases[2:], first_vector, masks)
        store.prefetch(self.rows)
        store.store(accumulate(e, operands, nest.reduction, tile, self.part))
