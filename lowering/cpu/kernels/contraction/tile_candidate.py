"""Matmuls and convolutions by tiles of vectors, with any arithmetic."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.arithmetic import Arithmetic
from braid.lowering.cpu.kernels.contraction.product import ProductStorage, StoredProduct
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize, TileSchedule
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate


@dataclass(frozen=True, eq=False)
class TileCandidate(ScheduledCandidate[TileSchedule]):
    """A product whose tiles are vectors of sums in registers."""

    storage: ProductStorage
    dense: dict[LayoutChoice, StoredProduct] = field(
        default_factory=dict[LayoutChoice, StoredProduct], init=False
    )
    """The products on dense tensors that were requested so far, by layouts."""

    @abstractmethod
    def arithmetic(self, choice: LayoutChoice) -> Arithmetic:
        """Return the arithmetic in these layouts."""

    @abstractmethod
    def vectors(self, stored: StoredProduct) -> Sequence[int]:
        """Return the vectors of a tile that the layout of B allows."""

    def size(self, stored: StoredProduct) -> ContractionSize:
        """Return the size that decides the time of a tile."""
        return stored.size

    def tile_size(self, stored: StoredProduct) -> ContractionSize:
        """Return the size by which tiles are chosen, for the types of the group."""
        return self.size(stored)

    def fits(self, choice: LayoutChoice) -> bool:
        """Return whether the loops can be made in these layouts."""
        return self.stored(choice).exists

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous; packed B takes no strides."""
        step = self.arithmetic(choice).group
        return self.storage.supports_strides(self.group, choice, step) and self.fits(choice)

    def space(self, level: int) -> Iterator[TileSchedule]:
        """Return the tiles that fit the block of B, by predicted time."""
        stored = self.stored(stored_choice(self.group))
        size, vectors = self.tile_size(stored), self.vectors(stored)
        return tiling.schedules(size, vectors, self.unit, stored.b_bytes, level)

    def supports_schedule(self, schedule: TileSchedule) -> bool:
        """Take any tile that fits."""
        stored = self.stored(stored_choice(self.group))
        return tiling.supports_schedule(
            schedule, self.tile_size(stored), self.vectors(stored), self.unit
        )

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        stored = self.stored(choice)
        return self.best_tile(stored, self.moved_bytes(choice)) * stored.slowdown

    def best_tile(self, stored: StoredProduct, moved_bytes: int = 0) -> float:
        """Return the seconds of the best tile, or of memory where that is slower."""
        size, vectors = self.size(stored), self.vectors(stored)
        return min(tiling.seconds(size, count, self.unit, moved_bytes) for count in vectors)

    def ranked_blocks(self, choice: LayoutChoice) -> list[int]:
        """Return the columns of a block of B from best to worst, for layouts with some."""
        vectors = tiling.ranked_vectors(self.size(self.stored(choice)), self.unit)
        return [self.unit.lanes * count for count in vectors]

    def stored(self, choice: LayoutChoice) -> StoredProduct:
        """Return the product in these layouts."""
        if any(layout.strides is not None for layout in (*choice.operands, *choice.results)):
            return self.framed(choice)
        if choice not in self.dense:
            self.dense[choice] = self.framed(choice)
        return self.dense[choice]

    def framed(self, choice: LayoutChoice) -> StoredProduct:
        """Return the product in these layouts, skipping multiplications with padding if that is
        faster."""
        stored = self.storage.stored(choice, self.unit, self.arithmetic(choice).group)
        return stored.with_best_frame(self.best_tile)
