"""Matrix products with an elementwise epilogue: row-major A and C, B packed or row-major."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import overlap_of, stored_choice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.matmul import (
    MatmulMatch,
    match_matmul,
    matmul_contraction,
    matmul_size,
    takes_strides,
    widens_fast,
)
from braid.lowering.cpu.kernels.contraction.microkernel import (
    VECTORS,
    WIDE_VECTORS,
    feasible_tiles,
)
from braid.lowering.cpu.kernels.contraction.overlapped import OverlappedGemm, can_overlap
from braid.lowering.cpu.kernels.contraction.tiling import TileSchedule
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel, overlapping_kernel
from braid.targets.kernels.kernel_family import Kernel, Overlap


@dataclass(frozen=True)
class GemmFamily(VectorFamily):
    """`braid.matmul` of f32 or f64 with an elementwise epilogue.

    Layouts: everything row-major but B, which is packed into column blocks (`Ba32b`, `abDc32d`:
    best for weights, which are packed at compile time) or row-major as well. B may be gathered
    from a table, which is stored so, or, for f32, be f16 or bf16 that is converted as it is loaded.
    """

    name: str = "gemm"
    version: int = 12
    anchors: ClassVar = (MatmulOp,)

    def match(self, group: FusedOp) -> "_Product | None":
        """One product of block arguments, or by slabs of one; the rest is elementwise."""
        found = match_matmul(group)
        if found is None or not widens_fast(found, self.machine):
            return None
        return _Product(group, self.unit_of(found.op.output), found)


@dataclass(frozen=True, eq=False)
class _Product(ScheduledCandidate[TileSchedule]):
    found: MatmulMatch

    def choices(self) -> Sequence[LayoutChoice]:
        """Packed B with the block sizes from best to worst, then row-major B."""
        rank = len(shape_of(self.found.rhs))
        vectors = tiling.ranked_vectors(matmul_size(self.found, packed=True), self.unit)
        blocks = [_packed(rank, count * self.unit.lanes) for count in vectors]
        return [self._choice(layout) for layout in (*blocks, Layout.row_major(rank))]

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """With neighbouring elements along the innermost dims; packed B is on its own."""
        rhs = choice.operands[self.found.rhs.index]
        packed = not rhs.is_row_major and rhs.strides is not None
        return not packed and takes_strides(self.group, choice)

    def space(self, level: int) -> Iterator[TileSchedule]:
        """Tiles that fit the block of B, by predicted time."""
        layout = layout_of(self.group.inputs[self.found.rhs.index].type)
        slabs = 1 if self.found.slabs is None else shape_of(self.found.rhs)[0]
        b_bytes = storage_bytes(self.found.rhs.type, layout) // slabs
        vectors = self._vectors(layout)
        return tiling.schedules(self._size(layout), vectors, self.unit, b_bytes, level)

    def takes(self, schedule: TileSchedule) -> bool:
        """Any tile that fits."""
        layout = layout_of(self.group.inputs[self.found.rhs.index].type)
        return tiling.takes(schedule, self._size(layout), self._vectors(layout), self.unit)

    def _size(self, layout: Layout) -> tiling.ContractionSize:
        size = matmul_size(self.found, not layout.is_row_major)
        if overlap_of(self.group) is None:
            return size
        # The rows of A are as far apart as those of the result.
        return replace(size, row_bytes=self.unit.element_bytes * size.columns)

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        layout = choice.operands[self.found.rhs.index]
        moved = self.moved_bytes(choice)
        size = matmul_size(self.found, not layout.is_row_major)
        return min(tiling.seconds(size, v, self.unit, moved) for v in self._vectors(layout))

    def overlap(self) -> Overlap | None:
        """The left operand, if its rows are dense and no longer than those of the result."""
        kernel = self._kernel(next(self.space(0)))
        if not can_overlap(kernel.problem):
            return None
        return Overlap(self.found.lhs.index, self._overlapped(kernel).scratch_bytes)

    def emit(self, symbol: str, schedule: TileSchedule) -> Kernel:
        """One tile per grid iteration."""
        kernel = self._kernel(schedule)
        problem = kernel.problem
        if overlap_of(self.group) == self.found.lhs.index and can_overlap(problem):
            body = self._overlapped(kernel)
            return overlapping_kernel(self.group, symbol, self.unit, body)
        body, in_place = kernel.iteration, problem.in_place
        return grid_kernel(
            self.group, symbol, self.unit, kernel.grid, body, in_place, is_unrolled=True
        )

    def _overlapped(self, kernel: ContractionKernel) -> OverlappedGemm:
        return OverlappedGemm(kernel, self.unit.element_bytes)

    def _choice(self, rhs: Layout) -> LayoutChoice:
        operands, results = (
            [Layout.row_major(len(shape_of(value))) for value in values]
            for values in (self.group.inputs, self.group.outputs)
        )
        operands[self.found.rhs.index] = rhs
        return LayoutChoice(tuple(operands), tuple(results))

    def _vectors(self, rhs: Layout) -> Sequence[int]:
        """Vectors per tile that the layout of B allows."""
        if rhs.is_row_major:
            is_wide = self._size(rhs).rows == 1 and feasible_tiles(self.unit, 0, (WIDE_VECTORS,))
            return (*VECTORS, WIDE_VECTORS) if is_wide else VECTORS
        return [rhs.block(rhs.rank - 1) // self.unit.lanes]

    def _kernel(self, schedule: TileSchedule) -> ContractionKernel:
        tile, lanes = schedule.tile, self.unit.lanes
        problem = matmul_contraction(
            self.found, stored_choice(self.group), tile.vectors * lanes, lanes
        )
        return ContractionKernel(problem, tile, lanes, schedule.columns_outside)


def _packed(rank: int, block: int) -> Layout:
    """Batch dims, column blocks, K, then the columns of a block."""
    letters = Layout.row_major(rank).tag
    batch, k, n = letters[:-2], letters[-2], letters[-1]
    return Layout.parse(f"{batch}{n.upper()}{k}{block}{n}")
