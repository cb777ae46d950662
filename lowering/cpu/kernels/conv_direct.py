"""Direct convolution with an elementwise epilogue, by the tiles of matrix products.

A row of the contraction is an output position; the reduction runs over the window and the input
channels. See `analysis.nests.convolution` for what layouts change.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self, cast

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.convolution import Convolution, ConvolutionLoops, convolution
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.windows import WindowDim
from braid.analysis.sizes.open_forms import open_dims
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.byte_pairs import columns_of_chunk
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.floats import FLOATS
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS
from braid.lowering.cpu.kernels.contraction.product import (
    ProductArithmetic,
    ProductFamily,
    ProductStorage,
    StoredProduct,
    loops_of,
)
from braid.lowering.cpu.kernels.contraction.shuffled import Positions
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize
from braid.lowering.cpu.kernels.groups.layout_choices import (
    outputs_innermost,
    packed_weight,
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.support.sizes.expression import Extent

_FAR_CHANNELS_FACTOR = 1.15
"""Slowdown where the input's channels are a whole image apart."""

_LINES_FACTOR, _WINDOWED_LINES_FACTOR = 1.05, 1.15
"""The slowdowns of vectors over positions, as measured for windows of one pixel and larger ones."""

_MOST_OF_A_LINE = 0.98
"""Products with padding are skipped if at most this fraction of a row's products are with elements
of the image. Skipping needs separate code at edges, which gained nothing for 3 × 3 on 56 × 56
(0.988), and cost registers for 7 × 7 on three channels of 224 × 224 (1.3 times the time)."""


@dataclass(frozen=True)
class ConvDirectFamily(ProductFamily):
    """`braid.conv` by some arithmetic, in one to three dims, unpadded, not depthwise.

    With an elementwise epilogue. Layouts of floats: row-major, channels last or in blocks of a
    vector (`aBcd16b`), the input and the result each in one of them, but a row-major result wants a
    row-major input. The weight is stored in blocks of output channels (`Acdb32a`; those of a group
    where there are several), or with output channels innermost (`bcda`) for a row-major result.
    Return layouts for 8- and 16-bit types: channels last, padded to whole steps, and the weight in
    blocks of output channels and of a step's input channels (`AcdB32a4b`).
    """

    arithmetic: ProductArithmetic = FLOATS
    anchors: ClassVar = (ConvOp,)

    @property
    def identity(self) -> tuple[str, int]:
        """See the base class."""
        return self.arithmetic.conv

    def find(
        self, group: FusedOp, extents_of: ExtentsOf | None = None
    ) -> "ConvolutionStorage | None":
        """See the base class; the number of images is any."""
        accumulates, is_open = self.arithmetic.accumulates, extents_of is not None
        found = convolution(group, accumulates, is_open=is_open)
        if found is None or found.is_depthwise:
            return None
        return ConvolutionStorage(found, extents_of or shape_of)


@dataclass(frozen=True)
class ConvolutionStorage(ProductStorage):
    """A convolution whose A is the input and B the weight, as stored for vectors of channels."""

    product: Convolution

    def float_choices(
        self, group: FusedOp, lanes: int, ranked: Callable[[LayoutChoice], list[int]]
    ) -> Sequence[LayoutChoice]:
        """Return layouts with channels last first, with blocks of output channels from best to
        worst.
        """
        rank = self.product.rank
        first, last = Layout.row_major(rank), Layout.channels_last(rank)

        def stored(source: Layout, target: Layout, weight: Layout) -> LayoutChoice:
            return uniform_choice(
                group, target, {self.product.left.index: source, self.product.right.index: weight}
            )

        blocks = [self.product.columns]
        if self.product.groups == 1:
            blocks = ranked(stored(last, last, packed_weight(rank, lanes)))
        weights = [packed_weight(rank, block) for block in blocks]
        sources, targets = [first, last], [last]
        # Nothing else offers blocks of other ranks, so that each would cost a reorder.
        if rank == 4 and self.product.depth % lanes == 0:
            sources.append(Layout.channel_blocks(rank, lanes))
        if rank == 4 and self.product.columns % lanes == 0:
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
        """Return channels last, and the weight in blocks of output channels and of a step's input
        channels.

        Input channels are padded to whole steps.
        """
        last = Layout.channels_last(self.product.rank)
        source = (
            last if self.product.depth % step == 0 else Layout.parse(f"{last.tag[:-1]}B{step}b")
        )
        weight = packed_weight(self.product.rank, block, step)
        if in_pairs:
            weight = Layout.parse(f"{weight.tag}:pairs")
        return uniform_choice(
            group, last, {self.product.left.index: source, self.product.right.index: weight}
        )

    def supports_strides(self, group: FusedOp, choice: LayoutChoice, step: int) -> bool:
        """See the base class; the weight is on its own."""
        return choice.operands[self.product.right.index].strides is None and results_alike(choice)

    def stored(self, choice: LayoutChoice, unit: VectorUnit, step: int) -> "StoredConvolution":
        """See the base class."""
        return StoredConvolution(choice, unit, step, self.product, self.extents_of)


@dataclass(frozen=True)
class StoredConvolution(StoredProduct):
    """A convolution in some layouts.

    Vectors run over output positions where the result is row-major; else products with the zeros
    that `framed` windows read are left out.
    """

    product: Convolution
    framed: tuple[WindowDim | None, ...] = ()

    @cached_property
    def loops(self) -> ConvolutionLoops:
        """Return the loops in these layouts."""
        fixed = (self.product, self.choice, self.unit.lanes)
        return ConvolutionLoops(*fixed, self.step, self.framed, self.extents_of)

    def contraction(self, block: int) -> Contraction[Extent] | None:
        """See the base class."""
        return self.loops.contraction(block)

    @property
    def block(self) -> int:
        """See the base class."""
        return self.choice.operands[self.product.right.index].block(0)

    @property
    def size(self) -> ContractionSize:
        """See the base class; rows are those that one row dim holds after merging."""
        loops = loops_of(self, 1)
        rows = loops.row.extent
        return ContractionSize(
            batches=loops.rows // rows,
            rows=rows,
            columns=loops.columns,
            depth=loops.depth,
            row_bytes=self._element_bytes * loops.row.strides[0],
            constants=self.product.points.constants,
            share=loops.share,
            window=loops.row_window,
            rows_open=self._has_open_rows(rows),
        )

    def _has_open_rows(self, rows: int) -> bool:
        """Return whether the row dim is open in the open form; dims outside of it may be merged."""
        output = self.product.op.output
        if self.loops.over_positions:
            return False
        *outer, innermost = open_dims(output)
        return innermost or (rows != shape_of(output)[-1] and any(outer))

    @property
    def b_bytes(self) -> int:
        """See the base class."""
        b = self.product.left if self.loops.over_positions else self.product.right
        return self._element_bytes * math.prod(shape_of(b))

    @property
    def _element_bytes(self) -> int:
        """Return the bytes of floats; less wide numbers count as bytes, as tiles were measured."""
        return self.unit.element_bytes if self.step == 1 else 1

    @property
    def positions(self) -> Positions:
        """Return the positions of the input."""
        depth = -(-self.product.depth // self.step) * self.step
        pitch = cast(int, self.loops.input.distance(self.product.rank - 1))
        return Positions(depth, pitch, columns_of_chunk(self.product.taps))

    @property
    def float_vectors(self) -> Sequence[int]:
        """See the base class."""
        anyhow = self.loops.over_positions or self.product.groups > 1
        return VECTORS if anyhow else [self.block // self.unit.lanes]

    @property
    def slowdown(self) -> float:
        """See the base class."""
        product = self.product
        if self.loops.over_positions:
            return _WINDOWED_LINES_FACTOR if product.taps > 1 else _LINES_FACTOR
        row_major = self.choice.operands[product.left.index].is_row_major
        return _FAR_CHANNELS_FACTOR if row_major and product.depth > self.unit.lanes else 1.0

    def without_zeros(self) -> Self:
        """Return the convolution framed, so that dims are not merged."""
        *lines, columns = self.product.windows_with_zeros
        if columns is not None and columns.share >= _MOST_OF_A_LINE:
            columns = None
        if self.loops.over_positions or not any((*lines, columns)):
            return self
        framed = replace(self, framed=(*lines, columns))
        return framed if framed.exists else self
