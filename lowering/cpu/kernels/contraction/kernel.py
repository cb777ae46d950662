"""The code of GEMM and convolution: tiles of C = A · B with an elementwise epilogue."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from braid.lowering.cpu.kernels.contraction.arithmetic import FLOATS, Arithmetic
from braid.lowering.cpu.kernels.contraction.microkernel import Tile, TileOperands, accumulate
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index
from braid.lowering.cpu.kernels.pointwise.epilogue import Epilogue, TileStore


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
    def _batches(self) -> int:
        """How many leading outer dims change B."""
        changing = [i for i, dim in enumerate(self.problem.outer) if dim.strides[1]]
        return changing[-1] + 1 if changing else 0

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """One tile; the rows that are left at the end have a tile of their own."""
        coordinates = e.coordinates(index, self.grid_extents)
        column_block = coordinates.pop(self._batches if self.columns_outside else -1)
        *outer, row_tile = coordinates
        problem, rows = self.problem, self.tile.rows
        bases = [
            e.dot(outer, [dim.strides[tensor] for dim in problem.outer])
            for tensor in range(len(problem.row.strides))
        ]
        whole, rest = divmod(problem.row.extent, rows)
        first = e.mul(row_tile, rows)
        bases = [e.add(b, e.mul(first, s)) for b, s in zip(bases, problem.row.strides, strict=True)]

        bases[0] = e.add(bases[0], problem.a_start)
        if (slabs := problem.slabs) is not None:
            bases[1] = slabs.begin(e, buffers[slabs.indices], bases[1])

        def emit(count: int) -> None:
            TileWriter(self, e, buffers, bases, column_block, count).write()

        if rest == 0:
            emit(rows)
        elif whole == 0:
            emit(rest)
        else:
            e.branch(row_tile, whole, lambda: emit(rows), lambda: emit(rest))


@dataclass(frozen=True)
class TileWriter:
    """One tile of `rows` rows, whose first row is at `bases` of A, B, the leaves and C."""

    kernel: ContractionKernel
    e: Emitter
    buffers: Sequence[Buffer]
    bases: Sequence[Index]
    column_block: Index
    rows: int

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
        masks = [e.tail_mask(columns - vector * e.lanes) for vector in range(vectors)]
        operands = TileOperands(
            self.buffers[problem.a],
            self.bases[0],
            problem.row.strides[0],
            self.buffers[problem.b],
            e.add(self.bases[1], e.mul(self.column_block, problem.block_stride)),
            [None] * len(masks) if problem.columns_padded else masks,
            kernel.arithmetic,
        )
        tile = Tile(self.rows, vectors, kernel.tile.unroll)
        sums = accumulate(e, operands, problem.reduction, tile)
        first_vector = e.mul(self.column_block, kernel.tile.vectors)
        epilogue = Epilogue(
            problem.anchor,
            problem.points,
            problem.row.strides[2:],
            problem.vector_steps,
        )
        TileStore(epilogue, e, self.buffers, self.bases[2:], first_vector, masks).store(sums)
