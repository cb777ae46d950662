"""Matrix products with an elementwise epilogue: row-major A and C, B packed or row-major."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import overlap_of
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.matmul import (
    MatmulMatch,
    match_matmul,
    matmul_contraction,
    matmul_size,
)
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS
from braid.lowering.cpu.kernels.contraction.overlapped import OverlappedGemm, can_overlap
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel, overlapping_kernel
from braid.lowering.cpu.kernels.groups.layout_choices import results_alike
from braid.lowering.cpu.kernels.groups.traffic import stored_bytes
from braid.lowering.cpu.kernels.groups.vector_family import VectorFamily
from braid.targets.kernels.kernel_family import Kernel, KernelRequest, Overlap, Schedule


@dataclass(frozen=True)
class GemmFamily(VectorFamily):
    """`braid.matmul` of f32 with an elementwise epilogue.

    Layouts: everything row-major but B, which is packed into column blocks (`Ba32b`, `abDc32d`:
    best for weights, which are packed at compile time) or row-major as well.
    """

    name: str = "gemm"

    def accepts(self, group: FusedOp) -> bool:
        """One product of block arguments, the rest elementwise on its result."""
        return match_matmul(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """Packed B with the block sizes from best to worst, then row-major B."""
        match = match_matmul(group)
        if match is None:
            return ()
        rank = len(match.points.shape)
        vectors = tiling.ranked_vectors(matmul_size(match, packed=True), self.unit)
        blocks = [_packed(rank, count * self.unit.lanes) for count in vectors]
        return [_choice(group, match, layout) for layout in (*blocks, Layout.row_major(rank))]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """With neighbouring elements along the innermost dims; packed B is on its own."""
        match = match_matmul(group)
        if match is None or not results_alike(choice):
            return False
        rhs = choice.operands[match.rhs.index]
        if not rhs.is_row_major and rhs.strides is not None:
            return False
        values = (*group.inputs, *group.outputs)
        layouts = (*choice.operands, *choice.results)
        return all(
            layout.strides is None or layout.strides[-1] == 1 or shape_of(value)[-1] == 1
            for value, layout in zip(values, layouts, strict=True)
        )

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Tiles that fit the block of B, by predicted time."""
        match = match_matmul(group)
        assert match is not None
        layout = layout_of(group.inputs[match.rhs.index].type)
        size = matmul_size(match, not layout.is_row_major)
        if overlap_of(group) is not None:
            # The rows of A are as far apart as those of the result.
            size = replace(size, row_bytes=4 * size.columns)
        b_bytes = storage_bytes(match.rhs.type, layout)
        return tiling.schedules(size, self._vectors(layout), self.unit, b_bytes)

    def default_schedule(self, group: FusedOp) -> Schedule:
        """The first of the schedules."""
        return next(self.schedules(group))

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        match = match_matmul(group)
        assert match is not None
        layout = choice.operands[match.rhs.index]
        moved = stored_bytes(group, choice)
        size = matmul_size(match, not layout.is_row_major)
        return min(tiling.seconds(size, v, self.unit, moved) for v in self._vectors(layout))

    def overlap(self, group: FusedOp) -> Overlap | None:
        """The left operand, if its rows are dense and no longer than those of the result."""
        match = match_matmul(group)
        if match is None:
            return None
        kernel = self._kernel(group, match, self.default_schedule(group))
        if not can_overlap(kernel.problem):
            return None
        return Overlap(match.lhs.index, OverlappedGemm(kernel).scratch_bytes)

    def emit(self, request: KernelRequest) -> Kernel:
        """One tile per grid iteration."""
        group = request.group
        match = match_matmul(group)
        assert match is not None
        kernel = self._kernel(group, match, self.schedule_of(request))
        problem = kernel.problem
        if overlap_of(group) == match.lhs.index and can_overlap(problem):
            return overlapping_kernel(request, self.unit, OverlappedGemm(kernel))
        return grid_kernel(request, self.unit, kernel.grid, kernel.iteration, problem.in_place)

    def _vectors(self, rhs: Layout) -> Sequence[int]:
        """Vectors per tile that the layout of B allows."""
        if rhs.is_row_major:
            return VECTORS
        return [rhs.block(rhs.rank - 1) // self.unit.lanes]

    def _kernel(self, group: FusedOp, match: MatmulMatch, schedule: Schedule) -> ContractionKernel:
        tile, lanes = tiling.tile_of(schedule), self.unit.lanes
        problem = matmul_contraction(group, match, tile.vectors * lanes, lanes)
        return ContractionKernel(problem, tile, lanes, bool(schedule["columns_outside"]))


def _packed(rank: int, block: int) -> Layout:
    """Batch dims, column blocks, K, then the columns of a block."""
    letters = Layout.row_major(rank).tag
    batch, k, n = letters[:-2], letters[-2], letters[-1]
    return Layout.parse(f"{batch}{n.upper()}{k}{block}{n}")


def _choice(group: FusedOp, match: MatmulMatch, rhs: Layout) -> LayoutChoice:
    plain = Layout.row_major(rhs.rank)
    operands = tuple(
        rhs if index == match.rhs.index else plain for index in range(len(group.inputs))
    )
    return LayoutChoice(operands, (plain,) * len(group.outputs))
