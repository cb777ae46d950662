"""int8 matmuls that are both computed, with an elementwise epilogue."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from braid.analysis.nests.matmul import MatrixProduct, matmul_contraction, matrix_product
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import is_unsigned
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.arithmetic import ByteArithmetic, adds_bytes
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.matmul import (
    by_columns,
    matmul_size,
    supports_strides,
)
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS, tile_cycles
from braid.lowering.cpu.kernels.contraction.packed import PackedContraction, unpacked_kernel
from braid.lowering.cpu.kernels.contraction.tiling import TileSchedule
from braid.lowering.cpu.kernels.contraction.words import WordArithmetic
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.math.points import has_code
from braid.targets.kernels.kernel_family import Kernel

_ROWS_CYCLES, _COLUMNS_CYCLES, _STAGE_CYCLES = 4.0, 5.0, 2.0
"""The cost of packing a vector of words, in multiply-adds: for row-major B, column-major B, and
A."""


@dataclass(frozen=True)
class GemmPackingFamily(VectorFamily):
    """`braid.matmul` of bytes of any signs into i32 with an elementwise epilogue.

    Layouts: everything row-major but B, which may lie by columns as well (`ba`, `abdc`). It is
    packed as it is read, or made ready in registers for few rows. This is for operands computed at
    run time: known ones are stored in the order of `LOW_PRECISION`.
    """

    name: str = "gemm-packing"
    version: int = 1
    anchors: ClassVar = (MatmulOp,)

    def match(self, group: FusedOp) -> "_Packing | None":
        """Match one product of block arguments, the rest elementwise on its result."""
        found = matrix_product(group, accumulates=True)
        if found is None or not adds_bytes(found.op) or not has_code(found.points):
            return None
        return _Packing(group, self.unit, found, ByteArithmetic.of(self.machine, self.unit.lanes))


@dataclass(frozen=True, eq=False)
class _Packing(ScheduledCandidate[TileSchedule]):
    product: MatrixProduct
    arithmetic: ByteArithmetic

    def choices(self) -> Sequence[LayoutChoice]:
        """Return B row-major, or column-major."""
        return [row_major_choice(self.group), by_columns(self.group, self.product)]

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether there are neighbouring elements along the innermost dims."""
        return supports_strides(self.group, choice)

    def space(self, level: int) -> Iterator[TileSchedule]:
        """Return the tiles by predicted time; columns are outside: a block of them is for
        all rows.
        """
        every = tiling.schedules(self._size, VECTORS, self.unit, _FAR, level)
        return (schedule for schedule in every if schedule.columns_outside)

    def supports_schedule(self, schedule: TileSchedule) -> bool:
        """Take any tile that fits."""
        fits = tiling.supports_schedule(schedule, self._size, VECTORS, self.unit)
        return fits and schedule.columns_outside

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of packing, and of the best tile or of memory, whichever is slower."""
        size, unit, kernel = self._size, self.unit, self._kernel(choice, next(self.space(0)))
        words = size.batches * kernel.steps * -(-size.columns // unit.lanes)
        if (few := self._unpacked(kernel)) is not None:
            rows, vectors = few.tile.rows, few.tile.vectors
            step = tile_cycles(rows, vectors, unit) * size.slowdown + vectors * _ROWS_CYCLES
            cycles = few.grid * kernel.steps * step
            return max(cycles / unit.fma_rate, self.moving_seconds(choice))
        moved = self.moved_bytes(choice)
        best = min(tiling.seconds(size, count, unit, moved) for count in VECTORS)
        cycles = words * (_ROWS_CYCLES if kernel.nest.column_stride == 1 else _COLUMNS_CYCLES)
        if kernel.arithmetic.stages:
            staged = kernel.nest.rows * kernel.parts * -(-kernel.steps // unit.lanes)
            cycles += _STAGE_CYCLES * staged
        return best + cycles / unit.fma_rate

    def emit(self, symbol: str, schedule: TileSchedule) -> Kernel:
        """Return a block of rows and a part of the columns per grid iteration."""
        kernel = self._kernel(stored_choice(self.group), schedule)
        if (few := self._unpacked(kernel)) is not None:
            in_place = few.nest.in_place
            fixed = (self.group, symbol, self.unit, few.grid, few.iteration, in_place)
            return grid_kernel(*fixed, is_unrolled=True)
        return grid_kernel(
            self.group,
            symbol,
            self.unit,
            kernel.grid,
            kernel.iteration,
            kernel.nest.in_place,
            kernel.scratch_bytes,
            prepared=kernel.prepared,
        )

    def _kernel(self, choice: LayoutChoice, schedule: TileSchedule) -> PackedContraction:
        tile, lanes = schedule.tile, self.unit.lanes
        nest = matmul_contraction(self.product, choice, tile.vectors * lanes, lanes)
        left, right = (element_type_of(value) for value in (self.product.left, self.product.right))
        unsigned = is_unsigned(left), is_unsigned(right)
        words = WordArithmetic.of(self.arithmetic, unsigned, nest.depth, tile.vectors * lanes)
        return PackedContraction(nest, tile, self.unit, words)

    def _unpacked(self, kernel: PackedContraction) -> ContractionKernel | None:
        """Return the kernel that packs nothing, if rows are few."""
        unit = self.unit
        return unpacked_kernel(kernel.nest, unit.lanes, unit.registers // 2, kernel.arithmetic)

    @property
    def _size(self) -> tiling.ContractionSize:
        size = matmul_size(self.product, packed=True, step=self.arithmetic.group)
        return replace(size, slowdown=self.arithmetic.slowdown)


_FAR = 1 << 62
"""Bytes of B: more than any cache has, so that tiles with columns outside come first."""
