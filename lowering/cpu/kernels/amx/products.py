"""int8 products and bf16 by AMX."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from braid.analysis.nests.contraction import Contraction
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx import tiling
from braid.lowering.cpu.kernels.amx.instructions import TileProduct
from braid.lowering.cpu.kernels.amx.kernel import AmxContraction
from braid.lowering.cpu.kernels.amx.tiling import BlockSchedule
from braid.lowering.cpu.kernels.contraction.product import (
    ProductArithmetic,
    ProductStorage,
    StoredProduct,
    loops_of,
)
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class AmxProducts(ProductArithmetic):
    """int8 products into i32, or of bf16 into f32, in the tile registers of AMX.

    Layouts as of vectors (`LOW_PRECISION`). Groups have whole blocks of columns and whole steps.
    """

    def candidate(
        self, group: FusedOp, unit: VectorUnit, storage: ProductStorage, machine: Machine
    ) -> "AmxCandidate | None":
        """Return the base class's candidate, whose epilogue's vectors are as wide as a tile."""
        product = storage.product
        tiles = TileProduct.of(product.op, machine) if unit.lanes == amx.COLUMNS else None
        if tiles is None or not product.has_whole(1, tiles.group):
            return None
        candidate = AmxCandidate(group, unit, storage, tiles)
        return candidate if candidate.layouts else None


AMX = AmxProducts(gemm=("gemm-amx", 4), conv=("conv-amx", 4))


@dataclass(frozen=True, eq=False)
class AmxCandidate(ScheduledCandidate[BlockSchedule]):
    """A product by tiles."""

    storage: ProductStorage
    tiles: TileProduct

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous; B is on its own."""
        takes = self.storage.supports_strides(self.group, choice, self.tiles.group)
        return takes and self._fits(choice)

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the blocks of B from best to worst."""
        offered = [
            self.storage.stepped_choice(self.group, count * amx.COLUMNS, self.tiles.group)
            for count in tiling.BLOCK_COLUMNS
        ]
        taken = [choice for choice in offered if self._fits(choice)]
        return sorted(taken, key=lambda choice: self._seconds(choice, 0))

    def space(self, level: int) -> Iterator[BlockSchedule]:
        """Return the blocks of registers as wide as those of B, by predicted time."""
        choice = stored_choice(self.group)
        return tiling.schedules(self._size(choice), self._column_tiles(choice), self.unit, level)

    def supports_schedule(self, schedule: BlockSchedule) -> bool:
        """Take any block that fits."""
        choice = stored_choice(self.group)
        return tiling.supports_schedule(schedule, self._size(choice), self._column_tiles(choice))

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best block, or of memory where that is slower."""
        return self._seconds(choice, self.moved_bytes(choice))

    def emit(self, symbol: str, schedule: BlockSchedule) -> Kernel:
        """Emit one block per grid iteration."""
        choice = stored_choice(self.group)
        nest, size = self._nest(choice), self._size(choice)
        block, outside = tiling.block_of(schedule, size), schedule.columns_outside
        is_far = size.result_is_far(self.unit.cache_bytes)
        kernel = AmxContraction(nest, block, outside, self.tiles, is_far)
        plain = grid_kernel(
            self.group,
            symbol,
            self.unit,
            kernel.grid,
            kernel.iteration,
            nest.in_place,
            kernel.scratch_bytes,
            around=(kernel.begin, kernel.end),
        )
        return replace(plain, features=self.tiles.features)

    def _seconds(self, choice: LayoutChoice, moved_bytes: int) -> float:
        tiles = self._column_tiles(choice)
        return tiling.seconds(self._size(choice), tiles, self.unit, moved_bytes)

    def _size(self, choice: LayoutChoice) -> tiling.AmxSize:
        return tiling.AmxSize.of(self._nest(choice), self.tiles.group)

    def _column_tiles(self, choice: LayoutChoice) -> int:
        return self._stored(choice).block // amx.COLUMNS

    def _nest(self, choice: LayoutChoice) -> Contraction:
        stored = self._stored(choice)
        return loops_of(stored, stored.block)

    def _fits(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous, and no block is of two groups."""
        stored = self._stored(choice)
        return self.storage.product.has_whole(stored.block, 1) and stored.exists

    def _stored(self, choice: LayoutChoice) -> StoredProduct:
        return self.storage.stored(choice, self.unit, self.tiles.group)
