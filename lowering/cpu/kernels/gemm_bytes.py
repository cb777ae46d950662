"""Matrix products of bytes with an elementwise epilogue, which requantizes: tiles as of f32."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.arithmetic import ByteArithmetic, takes_signs
from braid.lowering.cpu.kernels.contraction.byte_kernel import byte_kernel
from braid.lowering.cpu.kernels.contraction.matmul import (
    MatmulMatch,
    match_matmul,
    matmul_contraction,
    matmul_size,
)
from braid.lowering.cpu.kernels.groups.traffic import stored_bytes
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.targets.kernels.kernel_family import Kernel, Schedule


@dataclass(frozen=True)
class GemmBytesFamily(VectorFamily):
    """`braid.matmul` of unsigned and signed bytes into i32, with an elementwise epilogue.

    Layouts: everything row-major, A with rows padded to a multiple of a step's bytes, but B, which
    is in blocks of columns and of a step's rows (`BA32b4a`) and one for all batches.
    """

    name: str = "gemm-bytes"
    version: int = 4

    def match(self, group: FusedOp) -> "_Product | None":
        """One product of block arguments, the rest elementwise on its result."""
        found = match_matmul(group, integers=True)
        if found is None or not takes_signs(*found.op.operands):
            return None
        if any(extent != 1 for extent in shape_of(found.rhs)[:-2]):
            return None
        arithmetic = ByteArithmetic.of(self.machine, self.unit.lanes)
        return _Product(group, self.unit, found, arithmetic)


@dataclass(frozen=True, eq=False)
class _Product(VectorCandidate):
    found: MatmulMatch
    arithmetic: ByteArithmetic

    def choices(self) -> Sequence[LayoutChoice]:
        """Block sizes of B from best to worst."""
        vectors = tiling.ranked_vectors(self._size, self.unit)
        return [self._choice(count * self.unit.lanes) for count in vectors]

    def space(self, level: int) -> Iterator[Schedule]:
        """Tiles that fit the block of B, by predicted time."""
        layout = layout_of(self.group.inputs[self.found.rhs.index].type)
        b_bytes = storage_bytes(self.found.rhs.type, layout)
        vectors = [self._vectors(layout)]
        yield from tiling.schedules(self._size, vectors, self.unit, b_bytes, level)

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        vectors = self._vectors(choice.operands[self.found.rhs.index])
        moved = stored_bytes(self.group, choice)
        return self.arithmetic.slowdown * tiling.seconds(self._size, vectors, self.unit, moved)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """See `byte_kernel`."""
        chosen, lanes = self.completed(schedule), self.unit.lanes
        block, step = chosen["vectors"] * lanes, self.arithmetic.group
        problem = matmul_contraction(self.group, self.found, block, lanes, step)
        return byte_kernel(self.group, symbol, self.unit, problem, chosen, self.arithmetic)

    @property
    def _size(self) -> tiling.ContractionSize:
        return matmul_size(self.found, packed=True, step=self.arithmetic.group)

    def _choice(self, block: int) -> LayoutChoice:
        rank = len(self.found.points.shape)
        plain, step = Layout.row_major(rank), self.arithmetic.group
        batch, k, n = plain.tag[:-2], plain.tag[-2], plain.tag[-1]
        own = {self.found.rhs.index: f"{batch}{n.upper()}{k.upper()}{block}{n}{step}{k}"}
        if shape_of(self.found.lhs)[-1] % step:
            own[self.found.lhs.index] = f"{batch}{k}{n.upper()}{step}{n}"
        operands = tuple(
            Layout.parse(own[index]) if index in own else plain
            for index in range(len(self.group.inputs))
        )
        return LayoutChoice(operands, (plain,) * len(self.group.outputs))

    def _vectors(self, rhs: Layout) -> int:
        """Vectors per tile, by the layout of B."""
        return rhs.block(rhs.rank - 1) // self.unit.lanes
