"""int8 products and bf16, which are added up in 32 bits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.attribute_names import PAIRABLE
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.arithmetic import (
    BytePairArithmetic,
    LowPrecisionArithmetic,
    PairArithmetic,
    has_masks,
    low_precision_arithmetic,
)
from braid.lowering.cpu.kernels.contraction.low_precision_kernel import (
    low_precision_kernel,
    takes_nest,
)
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS
from braid.lowering.cpu.kernels.contraction.product import (
    ProductArithmetic,
    ProductStorage,
    StoredProduct,
    loops_of,
)
from braid.lowering.cpu.kernels.contraction.tile_candidate import TileCandidate
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize, TileSchedule
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class LowPrecisionProducts(ProductArithmetic):
    """Products of unsigned and signed bytes into i32, or of bf16 into f32.

    B is in blocks of columns and of a step's rows; bytes in pairs where that is faster and they
    can be. Groups have whole steps, and whole vectors of columns, or several columns in one block
    where the machine has masks for such numbers.
    """

    def candidate(
        self, group: FusedOp, unit: VectorUnit, storage: ProductStorage, machine: Machine
    ) -> "LowPrecisionCandidate | None":
        """See the base class."""
        product = storage.product
        arithmetic = low_precision_arithmetic(product.op, machine, unit.lanes)
        if arithmetic is None or not product.has_whole(1, arithmetic.group):
            return None
        whole = product.columns % unit.lanes == 0
        whole = whole or (product.columns > 1 and has_masks(machine, unit.lanes))
        if product.groups > 1 and not whole:
            return None
        in_pairs = None
        if product.groups == 1 and PAIRABLE in product.op.attributes:
            in_pairs = BytePairArithmetic.on(machine, unit.lanes)
        return LowPrecisionCandidate(group, unit, storage, arithmetic, in_pairs)


LOW_PRECISION = LowPrecisionProducts(
    gemm=("gemm-low-precision", 17), conv=("conv-low-precision", 20)
)


@dataclass(frozen=True, eq=False)
class LowPrecisionCandidate(TileCandidate):
    """A product by `plain`, or by bytes `in_pairs` where B is stored so."""

    plain: LowPrecisionArithmetic
    in_pairs: BytePairArithmetic | None

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the blocks of B from best to worst; pairs come first."""
        known = [each for each in (self.in_pairs, self.plain) if each is not None]
        choices = (
            self._choice(arithmetic, block)
            for arithmetic in known
            for block in self._blocks(arithmetic)
        )
        return [choice for choice in choices if self.fits(choice)]

    def emit(self, symbol: str, schedule: TileSchedule) -> Kernel:
        """See `low_precision_kernel`."""
        choice = stored_choice(self.group)
        stored = self.stored(choice)
        nest = loops_of(stored, schedule.vectors * self.unit.lanes)
        fixed = (self.group, symbol, self.unit, nest, schedule)
        return low_precision_kernel(*fixed, self.arithmetic(choice), stored.positions)

    def arithmetic(self, choice: LayoutChoice) -> LowPrecisionArithmetic:
        """See the base class."""
        in_pairs = (
            self.in_pairs if choice.operands[self.storage.product.right.index].pairs else None
        )
        return in_pairs or self.plain

    def vectors(self, stored: StoredProduct) -> Sequence[int]:
        """Return how many vectors a block has; any number where it has all columns of a group."""
        count, rest = divmod(stored.block, self.unit.lanes)
        return VECTORS if rest else (count,)

    def size(self, stored: StoredProduct) -> ContractionSize:
        """Return the size of the product, including the arithmetic besides multiply-adds."""
        own = self.arithmetic(stored.choice)
        return replace(stored.size, constants=own.constants, slowdown=own.slowdown)

    def fits(self, choice: LayoutChoice) -> bool:
        """Return whether the arithmetic can read A."""
        stored = self.stored(choice)
        own = self.arithmetic(choice)
        return takes_nest(stored.narrow, own, stored.positions, stored.block)

    def framed(self, choice: LayoutChoice) -> StoredProduct:
        """See the base class; but blocks of rows are staged whole."""
        arithmetic = self.arithmetic(choice)
        if isinstance(arithmetic, BytePairArithmetic | PairArithmetic):
            return self.storage.stored(choice, self.unit, arithmetic.group)
        return super().framed(choice)

    def _blocks(self, arithmetic: LowPrecisionArithmetic) -> list[int]:
        """Return the columns in a block of B, the fastest first."""
        product = self.storage.product
        if product.groups > 1 and product.columns % self.unit.lanes:
            return [product.columns]
        blocks = self.ranked_blocks(self._choice(arithmetic, self.unit.lanes))
        return [block for block in blocks if product.has_whole(block, 1)]

    def _choice(self, arithmetic: LowPrecisionArithmetic, block: int) -> LayoutChoice:
        in_pairs = arithmetic is self.in_pairs
        return self.storage.stepped_choice(self.group, block, arithmetic.group, in_pairs)
