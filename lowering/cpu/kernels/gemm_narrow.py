"""Matrix products of bytes and bf16 with an elementwise epilogue: tiles as of f32."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.attribute_names import PAIRABLE
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.byte_pairs import SHUFFLED, columns_of_chunk
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.arithmetic import (
    BytePairArithmetic,
    NarrowArithmetic,
    narrow_arithmetic,
)
from braid.lowering.cpu.kernels.contraction.matmul import (
    MatmulMatch,
    match_matmul,
    matmul_contraction,
    matmul_size,
    stepped_choice,
)
from braid.lowering.cpu.kernels.contraction.narrow_kernel import narrow_kernel
from braid.lowering.cpu.kernels.contraction.shuffled import Positions
from braid.lowering.cpu.kernels.contraction.tiling import TileSchedule
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, VectorFamily
from braid.targets.kernels.kernel_family import Kernel


@dataclass(frozen=True)
class GemmNarrowFamily(VectorFamily):
    """`braid.matmul` of unsigned and signed bytes into i32, or of bf16 into f32, with an epilogue.

    Layouts: everything row-major, A with rows padded to whole steps, but B, which is in blocks of
    columns and of a step's rows (`BA32b4a`) and one for all batches; bytes in pairs
    (`BA16b4a:pairs`) where that is faster and they can be.
    """

    name: str = "gemm-narrow"
    version: int = 17
    anchors: ClassVar = (MatmulOp,)

    def match(self, group: FusedOp) -> "_Product | None":
        """One product of block arguments, the rest elementwise on its result."""
        found = match_matmul(group, narrow=True)
        if found is None or any(extent != 1 for extent in shape_of(found.rhs)[:-2]):
            return None
        arithmetic = narrow_arithmetic(found.lhs, found.rhs, self.machine, self.unit.lanes)
        if arithmetic is None:
            return None
        in_pairs = None
        if PAIRABLE in found.op.attributes:
            in_pairs = BytePairArithmetic.on(self.machine, self.unit.lanes)
        return _Product(group, self.unit, found, arithmetic, in_pairs)


@dataclass(frozen=True, eq=False)
class _Product(ScheduledCandidate[TileSchedule]):
    found: MatmulMatch
    arithmetic: NarrowArithmetic
    in_pairs: BytePairArithmetic | None

    def choices(self) -> Sequence[LayoutChoice]:
        """Block sizes of B from best to worst; pairs come first."""
        known = [each for each in (self.in_pairs, self.arithmetic) if each is not None]
        return [
            choice
            for arithmetic in known
            for count in tiling.ranked_vectors(self._size(arithmetic), self.unit)
            if self._takes(choice := self._choice(arithmetic, count * self.unit.lanes))
        ]

    def space(self, level: int) -> Iterator[TileSchedule]:
        """Tiles that fit the block of B, by predicted time."""
        layout = layout_of(self.group.inputs[self.found.rhs.index].type)
        b_bytes = storage_bytes(self.found.rhs.type, layout)
        size = self._size(self._of(layout))
        yield from tiling.schedules(size, [self._vectors(layout)], self.unit, b_bytes, level)

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        layout = choice.operands[self.found.rhs.index]
        arithmetic, moved = self._of(layout), self.moved_bytes(choice)
        size, vectors = self._size(arithmetic), self._vectors(layout)
        return tiling.seconds(size, vectors, self.unit, moved)

    def emit(self, symbol: str, schedule: TileSchedule) -> Kernel:
        """See `narrow_kernel`."""
        choice, lanes = stored_choice(self.group), self.unit.lanes
        arithmetic = self._of(choice.operands[self.found.rhs.index])
        block, step = schedule.vectors * lanes, arithmetic.group
        problem = matmul_contraction(self.found, choice, block, lanes, step)
        fixed = (self.group, symbol, self.unit, problem, schedule, arithmetic)
        return narrow_kernel(*fixed, self._positions(arithmetic))

    def _of(self, rhs: Layout) -> NarrowArithmetic:
        """What the products are made by."""
        return (self.in_pairs if rhs.pairs else None) or self.arithmetic

    def _takes(self, choice: LayoutChoice) -> bool:
        """Whether chunks of columns are whole blocks, and rows not too short."""
        rhs = choice.operands[self.found.rhs.index]
        if not rhs.pairs:
            return True
        positions = self._positions(self._of(rhs))
        return positions.depth >= SHUFFLED and positions.chunk % rhs.block(rhs.rank - 1) == 0

    def _positions(self, arithmetic: NarrowArithmetic) -> Positions:
        """Rows of A, which have nothing between them."""
        depth = self._size(arithmetic).depth * arithmetic.group
        return Positions(depth, depth, columns_of_chunk(1))

    def _size(self, arithmetic: NarrowArithmetic) -> tiling.ContractionSize:
        size = matmul_size(self.found, packed=True, step=arithmetic.group)
        return replace(size, constants=arithmetic.constants, slowdown=arithmetic.slowdown)

    def _choice(self, arithmetic: NarrowArithmetic, block: int) -> LayoutChoice:
        in_pairs = arithmetic is self.in_pairs
        return stepped_choice(self.group, self.found, block, arithmetic.group, in_pairs)

    def _vectors(self, rhs: Layout) -> int:
        """Vectors per tile, by the layout of B."""
        return rhs.block(rhs.rank - 1) // self.unit.lanes
