"""The code of GEMM and convolution: tiles of C = A · B with an elementwise epilogue."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from braid.lowering.cpu.kernels.contraction.arithmetic import FLOATS, Arithmetic
from braid.lowering.cpu.kernels.contraction.microkernel import (
    Part,
    Tile,
    TileOperands,
    accumulate,
)
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.contraction.zeros import TileRun, tile_runs
from braid.lowering.cpu.kernels.pointwise.epilogue import Epilogue, TileStore
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index


@dataclass(frozen=True)
class ContractionKernel:
    """Emits a contraction with one tile per grid iteration.

    `columns_outside` says that a column block of B is used for all rows before the next one.
    """

    problem: Contraction
    tile: Tile
    lanes: int
    columns_outside: bool
    arithmetic: Arithmetic = FLOATS

    @property
    def block(self) -> int:
        """Columns of a tile."""
        return self.tile.vectors * self.lanes

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Outer dims that change B, and then column blocks and other dims in their order."""
        blocks = -(-self.problem.columns // self.block)
        row_tiles = -(-self.problem.row.extent // self.tile.rows)
        outer = [dim.extent for dim in self.problem.outer]
        batches = self._batches
        free = (*outer[batches:], row_tiles)
        inner = (blocks, *free) if self.columns_outside else (*free, blocks)
        return (*outer[:batches], *inner)

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    @property
    def reads_rows_once(self) -> bool:
        """Whether rows of A follow each other in memory, and all columns take them at once."""
        problem, group = self.problem, self.arithmetic.group
        is_dense = problem.row.strides[0] == problem.depth * group
        is_dense = is_dense and [dim.strides[0] for dim in problem.reduction] == [group]
        return is_dense and not self.columns_outside and problem.row.extent > self.tile.rows

    @property
    def _batches(self) -> int:
        """How many leading outer dims change B."""
        changing = [i for i, dim in enumerate(self.problem.outer) if dim.strides[1]]
        return changing[-1] + 1 if changing else 0

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """One tile; the rows that are left at the end have a tile of their own."""
        coordinates = e.coordinates(index, self.grid_extents)
        column_block = coordinates.pop(self._batches if self.columns_outside else -1)
        *outer, row_tile = coordinates
        problem = self.problem
        bases = [
            e.dot(outer, [dim.strides[tensor] for dim in problem.outer])
            for tensor in range(len(problem.row.strides))
        ]
        first = e.mul(row_tile, self.tile.rows)
        bases = [e.add(b, e.mul(first, s)) for b, s in zip(bases, problem.row.strides, strict=True)]

        bases[0] = e.add(bases[0], problem.a_start)
        if (slabs := problem.slabs) is not None:
            bases[1] = slabs.begin(e, buffers[slabs.indices], bases[1])

        bounds = self._bounds(e, outer)

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

        emit(tile_runs(problem.row.extent, self.tile.rows, problem.row_window), 0)

    def _bounds(self, e: Emitter, outer: Sequence[Index]) -> tuple[tuple[Index, Index], ...]:
        """Of the dims of the reduction before the last framed one, and of that if it is outer."""
        problem = self.problem
        bounds: list[tuple[Index, Index]] = []
        for framed in problem.framed:
            inner = problem.reduction[len(bounds) : framed.reduced]
            bounds += [(0, dim.extent) for dim in inner]
            if framed.dim < len(outer):
                bounds.append(framed.window.elements_at(e, outer[framed.dim]))
        return tuple(bounds)


@dataclass(frozen=True)
class TileWriter:
    """One tile of `rows` rows, whose first row is at `bases` of A, B, the leaves and C.

    Of its products, only `part` is made.
    """

    kernel: ContractionKernel
    e: Emitter
    buffers: Sequence[Buffer]
    bases: Sequence[Index]
    column_block: Index
    rows: int
    part: Part = field(default_factory=Part)

    def write(self) -> None:
        """Accumulates the tile, applies the epilogue and stores; the last columns are fewer."""
        whole, rest = divmod(self.kernel.problem.columns, self.kernel.block)
        self.e.branch(
            self.column_block if whole and rest else 0,
            whole,
            lambda: self._write(self.kernel.block),
            lambda: self._write(rest),
        )

    def _write(self, columns: int) -> None:
        e, kernel, problem = self.e, self.kernel, self.kernel.problem
        vectors = -(-columns // e.lanes)
        left = [columns - vector * e.lanes for vector in range(vectors)]
        masks = [e.tail_mask(count) for count in left]
        existing = [None] * vectors if problem.columns_padded else masks
        operands = TileOperands(
            self.buffers[problem.a],
            self.bases[0],
            problem.row.strides[0],
            self.buffers[problem.b],
            e.add(self.bases[1], e.mul(self.column_block, problem.block_stride)),
            [kernel.arithmetic.mask(e, *own) for own in zip(left, existing, strict=True)],
            kernel.arithmetic,
            kernel.reads_rows_once,
        )
        tile = Tile(self.rows, vectors, kernel.tile.unroll)
        first_vector = e.mul(self.column_block, kernel.tile.vectors)
        epilogue = Epilogue(
            problem.anchor,
            problem.points,
            problem.row.strides[2:],
            problem.vector_steps,
        )
        store = TileStore(epilogue, e, self.buffers, self.bases[2:], first_vector, masks)
        store.prefetch(self.rows)
        store.store(accumulate(e, operands, problem.reduction, tile, self.part))
