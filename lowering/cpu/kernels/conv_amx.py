"""Convolution of bytes and bf16 by AMX, with an elementwise epilogue."""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import BlockArgument

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.amx.family import AmxCandidate, AmxFamily
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.conv.contraction import ConvContraction
from braid.lowering.cpu.kernels.conv.match import ConvMatch, match_convolution, stepped_choice
from braid.lowering.cpu.kernels.groups.layout_choices import results_alike


@dataclass(frozen=True)
class ConvAmxFamily(AmxFamily):
    """`braid.conv` of bytes into i32, or of bf16 into f32, in one to three dims.

    Not depthwise; with an elementwise epilogue. Layouts as of `conv-narrow`: channels last, padded
    to whole steps where they are not; the weight in blocks of output channels and of a step's
    input channels (`AcdB32a4b`). Groups have whole blocks of output channels and whole steps.
    """

    name: str = "conv-amx"
    version: int = 4
    anchors: ClassVar = (ConvOp,)

    def match(self, group: FusedOp) -> "_Convolution | None":
        """One convolution of block arguments, the rest elementwise on its result."""
        found = match_convolution(group, narrow=True)
        if found is None or found.is_depthwise:
            return None
        product = self.product(found.input, found.weight)
        if product is None or (found.groups > 1 and found.depth % product.group):
            return None
        candidate = _Convolution(group, self.unit, product, found)
        return candidate if candidate.layouts else None


@dataclass(frozen=True, eq=False)
class _Convolution(AmxCandidate):
    found: ConvMatch

    @property
    def right(self) -> BlockArgument:
        """The weight."""
        return self.found.weight

    def choice(self, columns: int) -> LayoutChoice:
        """See `stepped_choice`."""
        return stepped_choice(self.group, self.found, columns, self.product.group)

    def columns(self, layout: Layout) -> int:
        """The block of output channels."""
        return layout.block(0)

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous; the weight is on its own."""
        if choice.operands[self.right.index].strides is not None:
            return False
        return results_alike(choice) and self.problem(choice) is not None

    def problem(self, choice: LayoutChoice) -> Contraction | None:
        """None where vectors would not be contiguous, or a block would be of two groups."""
        columns = self.columns(choice.operands[self.right.index])
        if self.found.groups > 1 and self.found.columns % columns:
            return None
        stored = ConvContraction(self.found, choice, self.unit.lanes, self.product.group)
        return stored.contraction(columns)
