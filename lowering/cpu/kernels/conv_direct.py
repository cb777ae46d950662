"""Direct convolution with an elementwise epilogue, by the tiles of matrix products.

A row of the contraction is an output position; the reduction runs over the window and the input
channels. Dims that are contiguous in memory are merged, so that a 1 × 1 convolution of stride 1
is one matrix product over all positions. See `conv.contraction` for what layouts change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.floats import FLOATS
from braid.lowering.cpu.kernels.contraction.product import Product, ProductArithmetic, ProductFamily
from braid.lowering.cpu.kernels.conv.contraction import ConvContraction
from braid.lowering.cpu.kernels.conv.match import ConvMatch, match_convolution
from braid.lowering.cpu.kernels.groups.layout_choices import (
    outputs_innermost,
    packed_weight,
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.unit.vector_unit import VectorUnit


@dataclass(frozen=True)
class ConvDirectFamily(ProductFamily):
    """`braid.conv` by some arithmetic, in one to three dims, unpadded, not depthwise.

    With an elementwise epilogue. Layouts of floats: row-major, channels last or in blocks of a
    vector (`aBcd16b`), the input and the result each in one of them, but a row-major result wants a
    row-major input. The weight is stored in blocks of output channels (`Acdb32a`; those of a group
    where there are several), or with output channels innermost (`bcda`) for a row-major result.
    Of numbers of 8 and 16 bits: channels last, padded to whole steps where they are not, and the
    weight in blocks of output channels and of a step's input channels (`AcdB32a4b`).
    """

    arithmetic: ProductArithmetic = FLOATS
    anchors: ClassVar = (ConvOp,)

    @property
    def identity(self) -> tuple[str, int]:
        """As in the base class."""
        return self.arithmetic.conv

    def find(self, group: FusedOp) -> "ConvProduct | None":
        """As in the base class."""
        found = match_convolution(group, narrow=self.arithmetic.accumulates)
        if found is None or found.is_depthwise:
            return None
        sizes = (found.groups, found.columns, found.depth)
        return ConvProduct(found.op, found.input, found.weight, *sizes, found)


@dataclass(frozen=True)
class ConvProduct(Product):
    """A convolution whose A is the input and B the weight, as stored for vectors of channels."""

    found: ConvMatch

    def float_choices(
        self, group: FusedOp, lanes: int, ranked: Callable[[LayoutChoice], list[int]]
    ) -> Sequence[LayoutChoice]:
        """Channels last first, with blocks of output channels from best to worst."""
        rank = self.found.rank
        first, last = Layout.row_major(rank), Layout.channels_last(rank)

        def stored(source: Layout, target: Layout, weight: Layout) -> LayoutChoice:
            return uniform_choice(
                group, target, {self.left.index: source, self.right.index: weight}
            )

        blocks = [self.columns]
        if self.groups == 1:
            blocks = ranked(stored(last, last, packed_weight(rank, lanes)))
        weights = [packed_weight(rank, block) for block in blocks]
        sources, targets = [first, last], [last]
        # Nothing else offers blocks of other ranks, so that each would cost a reorder.
        if rank == 4 and self.depth % lanes == 0:
            sources.append(Layout.channel_blocks(rank, lanes))
        if rank == 4 and self.columns % lanes == 0:
            targets.append(Layout.channel_blocks(rank, lanes))
        return [
            *(stored(last, last, weight) for weight in weights),
            *(
                stored(source, target, weights[0])
                for source in sources
                for target in targets
                if (source, target) != (last, last)
            ),
            stored(first, first, outputs_innermost(rank)),
        ]

    def stepped_choice(
        self, group: FusedOp, block: int, step: int, in_pairs: bool = False
    ) -> LayoutChoice:
        """Channels last, the weight in blocks of output channels and of a step's input channels.

        Input channels are padded to whole steps.
        """
        last = Layout.channels_last(self.found.rank)
        source = last if self.depth % step == 0 else Layout.parse(f"{last.tag[:-1]}B{step}b")
        weight = packed_weight(self.found.rank, block, step)
        if in_pairs:
            weight = Layout.parse(f"{weight.tag}:pairs")
        return uniform_choice(group, last, {self.left.index: source, self.right.index: weight})

    def takes_strides(self, group: FusedOp, choice: LayoutChoice, step: int) -> bool:
        """As in the base class; the weight is on its own."""
        return choice.operands[self.right.index].strides is None and results_alike(choice)

    def stored(self, choice: LayoutChoice, unit: VectorUnit, step: int) -> ConvContraction:
        """As in the base class."""
        return ConvContraction(choice, unit, step, self.found)
