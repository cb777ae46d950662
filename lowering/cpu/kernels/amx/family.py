"""What the families of products by AMX have in common."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.layout import Layout
from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx import tiling
from braid.lowering.cpu.kernels.amx.instructions import TileProduct
from braid.lowering.cpu.kernels.amx.kernel import AmxContraction
from braid.lowering.cpu.kernels.amx.tiling import BlockSchedule
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.targets.kernels.kernel_family import Kernel


@dataclass(frozen=True)
class AmxFamily(VectorFamily):
    """Products whose operands are bytes or bf16, where the machine has AMX."""

    def product(self, a: SSAValue, b: SSAValue) -> TileProduct | None:
        """What multiplies them; the epilogue's vectors are as wide as a tile."""
        return TileProduct.of(a, b, self.machine) if self.unit.lanes == amx.COLUMNS else None


@dataclass(frozen=True, eq=False)
class AmxCandidate(ScheduledCandidate[BlockSchedule]):
    """A product by tiles. Subclasses say how it is stored and what its loops are."""

    product: TileProduct

    @property
    @abstractmethod
    def right(self) -> BlockArgument:
        """B, which is stored in blocks of columns."""

    @abstractmethod
    def choice(self, columns: int) -> LayoutChoice:
        """The layouts with so many columns in a block."""

    @abstractmethod
    def problem(self, choice: LayoutChoice) -> Contraction | None:
        """The loops in these layouts, None where they cannot be."""

    @abstractmethod
    def columns(self, layout: Layout) -> int:
        """In a block of B."""

    def choices(self) -> Sequence[LayoutChoice]:
        """Blocks of B from best to worst."""
        offered = [self.choice(count * amx.COLUMNS) for count in tiling.BLOCK_COLUMNS]
        taken = [choice for choice in offered if self.problem(choice) is not None]
        return sorted(taken, key=lambda choice: self._seconds(choice, 0))

    def space(self, level: int) -> Iterator[BlockSchedule]:
        """Blocks of registers as wide as those of B, by predicted time."""
        choice = stored_choice(self.group)
        return tiling.schedules(self._size(choice), self._column_tiles(choice), self.unit, level)

    def takes(self, schedule: BlockSchedule) -> bool:
        """Any block that fits."""
        choice = stored_choice(self.group)
        return tiling.takes(schedule, self._size(choice), self._column_tiles(choice))

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best block, or of memory where that is slower."""
        return self._seconds(choice, self.moved_bytes(choice))

    def emit(self, symbol: str, schedule: BlockSchedule) -> Kernel:
        """One block per grid iteration."""
        choice = stored_choice(self.group)
        problem, size = self._problem(choice), self._size(choice)
        block, outside = tiling.block_of(schedule, size), schedule.columns_outside
        is_far = size.result_is_far(self.unit.cache_bytes)
        kernel = AmxContraction(problem, block, outside, self.product, is_far)
        plain = grid_kernel(
            self.group,
            symbol,
            self.unit,
            kernel.grid,
            kernel.iteration,
            problem.in_place,
            kernel.scratch_bytes,
            around=(kernel.begin, kernel.end),
        )
        return replace(plain, features=self.product.features)

    def _seconds(self, choice: LayoutChoice, moved_bytes: int) -> float:
        tiles = self._column_tiles(choice)
        return tiling.seconds(self._size(choice), tiles, self.unit, moved_bytes)

    def _size(self, choice: LayoutChoice) -> tiling.AmxSize:
        return tiling.AmxSize.of(self._problem(choice), self.product.group)

    def _column_tiles(self, choice: LayoutChoice) -> int:
        return self.columns(choice.operands[self.right.index]) // amx.COLUMNS

    def _problem(self, choice: LayoutChoice) -> Contraction:
        found = self.problem(choice)
        assert found is not None, "the family was asked for layouts it did not offer"
        return found
