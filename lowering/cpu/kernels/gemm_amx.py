"""Matrix products of bytes and bf16 by AMX, with an elementwise epilogue."""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import BlockArgument

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.amx.family import AmxCandidate, AmxFamily
from braid.lowering.cpu.kernels.contraction.matmul import (
    MatmulMatch,
    match_matmul,
    matmul_contraction,
    stepped_choice,
)
from braid.lowering.cpu.kernels.contraction.problem import Contraction


@dataclass(frozen=True)
class GemmAmxFamily(AmxFamily):
    """`braid.matmul` of bytes into i32, or of bf16 into f32, with an elementwise epilogue.

    Layouts as of `gemm-narrow`: everything row-major, A with rows padded to whole steps, but B,
    which is in blocks of columns and of a step's rows (`BA32b4a`) and one for all batches.
    """

    name: str = "gemm-amx"
    version: int = 4
    anchors: ClassVar = (MatmulOp,)

    def match(self, group: FusedOp) -> "_Product | None":
        """One product of block arguments, the rest elementwise on its result."""
        found = match_matmul(group, narrow=True)
        if found is None or any(extent != 1 for extent in shape_of(found.rhs)[:-2]):
            return None
        product = self.product(found.lhs, found.rhs)
        return None if product is None else _Product(group, self.unit, product, found)


@dataclass(frozen=True, eq=False)
class _Product(AmxCandidate):
    found: MatmulMatch

    @property
    def right(self) -> BlockArgument:
        """See the base class."""
        return self.found.rhs

    def choice(self, columns: int) -> LayoutChoice:
        """See `stepped_choice`."""
        return stepped_choice(self.group, self.found, columns, self.product.group)

    def columns(self, layout: Layout) -> int:
        """The block of the last dim."""
        return layout.block(layout.rank - 1)

    def problem(self, choice: LayoutChoice) -> Contraction:
        """See `matmul_contraction`."""
        columns = self.columns(choice.operands[self.right.index])
        lanes, step = self.unit.lanes, self.product.group
        return matmul_contraction(self.found, choice, columns, lanes, step)
