"""Products of f32 and f64 by multiply-adds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import overlap_of, stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.arithmetic import FLOATS as MULTIPLY_ADDS
from braid.lowering.cpu.kernels.contraction.arithmetic import Arithmetic
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.overlapped import OverlappedGemm, can_overlap
from braid.lowering.cpu.kernels.contraction.product import (
    ProductArithmetic,
    ProductStorage,
    StoredProduct,
    loops_of,
    open_loops_of,
)
from braid.lowering.cpu.kernels.contraction.tile_candidate import TileCandidate
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize, TileSchedule
from braid.lowering.cpu.unit.kernel_function import grid_kernel, overlapping_kernel
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.support.sizes.expression import Extent
from braid.targets.kernels.kernel_family import Kernel, Overlap
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class FloatProducts(ProductArithmetic):
    """Products of f32 or f64, added up as such."""

    def candidate(
        self, group: FusedOp, unit: VectorUnit, storage: ProductStorage, machine: Machine
    ) -> "FloatCandidate":
        """See the base class."""
        return FloatCandidate(group, unit, storage)

    def open_candidate(
        self, group: FusedOp, unit: VectorUnit, storage: ProductStorage
    ) -> "OpenProduct":
        """See the base class."""
        return OpenProduct(group, unit, storage)


FLOATS = FloatProducts(gemm=("gemm", 12), conv=("conv-direct", 14), accumulates=False)


@dataclass(frozen=True, eq=False)
class FloatCandidate(TileCandidate):
    """A product whose steps are single rows of B, which `multiplies` converts if it has to."""

    multiplies: Arithmetic = MULTIPLY_ADDS

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the layouts of the matmul in which vectors are contiguous."""
        return [choice for choice in self._offers if self.fits(choice)]

    def supports_layout(self, choice: LayoutChoice) -> bool:
        """See `Candidate`."""
        return any(self.fits(each) for each in self._offers if each == choice)

    @cached_property
    def _offers(self) -> Sequence[LayoutChoice]:
        return self.storage.float_choices(self.group, self.unit.lanes, self.ranked_blocks)

    def arithmetic(self, choice: LayoutChoice) -> Arithmetic:
        """See the base class."""
        return self.multiplies

    def vectors(self, stored: StoredProduct) -> Sequence[int]:
        """See the base class."""
        return stored.float_vectors

    def tile_size(self, stored: StoredProduct) -> ContractionSize:
        """Return the tile size over the left operand, whose rows are then as far apart as those of
        the result.
        """
        size = self.size(stored)
        if overlap_of(self.group) is None:
            return size
        return replace(size, row_bytes=self.unit.element_bytes * size.columns)

    def overlap(self) -> Overlap | None:
        """Return the left operand if its rows are dense and no longer than the result's."""
        if not self.storage.may_overlap:
            return None
        kernel = self._kernel(next(self.space(0)))
        if not can_overlap(kernel.nest):
            return None
        return Overlap(self.storage.product.left.index, self._overlapped(kernel).scratch_bytes)

    def emit(self, symbol: str, schedule: TileSchedule) -> Kernel:
        """Emit one tile per grid iteration."""
        kernel = self._kernel(schedule)
        nest = kernel.nest
        if overlap_of(self.group) == self.storage.product.left.index and can_overlap(nest):
            body = self._overlapped(kernel)
            return overlapping_kernel(self.group, symbol, self.unit, body)
        return _unrolled(self.group, symbol, self.unit, kernel)

    def _overlapped(self, kernel: ContractionKernel) -> OverlappedGemm:
        return OverlappedGemm(kernel, self.unit.element_bytes)

    def _kernel(self, schedule: TileSchedule) -> ContractionKernel:
        tile, lanes = schedule.tile, self.unit.lanes
        nest = loops_of(self.stored(stored_choice(self.group)), tile.vectors * lanes)
        return ContractionKernel(nest, tile, lanes, schedule.columns_outside, self.multiplies)


@dataclass(frozen=True, eq=False)
class OpenProduct:
    """A product with open dims; see `OpenCandidate`."""

    group: FusedOp
    unit: VectorUnit
    storage: ProductStorage

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """Return where tensors fit each other at all sizes, and vectors are contiguous."""
        return self._stored(choice).exists

    def emit(self, symbol: str, schedule: TileSchedule) -> Kernel:
        """Emit one tile per grid iteration."""
        tile, lanes = schedule.tile, self.unit.lanes
        nest = open_loops_of(self._stored(stored_choice(self.group)), tile.vectors * lanes)
        kernel = ContractionKernel(nest, tile, lanes, schedule.columns_outside, MULTIPLY_ADDS)
        return _unrolled(self.group, symbol, self.unit, kernel)

    def _stored(self, choice: LayoutChoice) -> StoredProduct:
        return self.storage.stored(choice, self.unit, 1).without_zeros()


def _unrolled(
    group: FusedOp, symbol: str, unit: VectorUnit, kernel: ContractionKernel[Extent]
) -> Kernel:
    body, in_place = kernel.iteration, kernel.nest.in_place
    return grid_kernel(group, symbol, unit, kernel.grid, body, in_place, is_unrolled=True)
