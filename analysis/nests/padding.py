"""Nests of paddings: the operand inside of the result, and the border around it in slabs."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import LoopDim, merged, row_major_strides
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_number
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent

Range = tuple[Extent, Extent]
"""The first position along a dim, and how many there are."""


@dataclass(frozen=True)
class Slab:
    """A part of the border: loops over it (one stride each), from an element on."""

    start: Extent
    dims: tuple[LoopDim[Extent], ...]


@dataclass(frozen=True)
class PadNest:
    """A padding with `value` of `low` elements before and `high` elements after each dim.

    `operand` and `result` are the shapes of its tensors.
    """

    operand: tuple[Extent, ...]
    result: tuple[Extent, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    value: float | int

    def fits(self, choice: LayoutChoice) -> bool:
        """Return whether both sides have one layout, in which no block is padded."""
        layout = choice.results[0]
        sides = zip(self.low, self.high, self.operand, strict=True)
        return choice.operands[0] == layout and all(
            layout.block(dim) == 1 or (low == high == 0 and extent % layout.block(dim) == 0)
            for dim, (low, high, extent) in enumerate(sides)
        )

    def inside(self, layout: Layout) -> tuple[Extent, tuple[LoopDim[Extent], ...]]:
        """Return where the operand begins in the result, and loops with strides in both."""
        extents = layout.storage_shape(self.operand)
        strides = layout.storage_strides(self.result)
        start = sum(
            self.low[dim.dim] * stride
            for dim, stride in zip(layout.dims, strides, strict=True)
            if dim.extent is None
        )
        pairs = zip(row_major_strides(extents), strides, strict=True)
        loops = [LoopDim(extent, pair) for extent, pair in zip(extents, pairs, strict=True)]
        return start, merged(loops) or (LoopDim(1, (1, 1)),)

    def border(self, layout: Layout) -> list[Slab]:
        """Return the border, each element once: before and after the inside along each storage dim.

        Outside of that dim a slab has the extents of the operand, inside of it those of the result.
        """
        strides = layout.storage_strides(self.result)
        whole: list[Range] = [(0, extent) for extent in layout.storage_shape(self.result)]
        inside, slabs = list(whole), list[Slab]()
        for place, dim in enumerate(layout.dims):
            if dim.extent is not None:
                continue
            low, high = (side[dim.dim] // dim.step for side in (self.low, self.high))
            extent = whole[place][1]
            inside[place] = (low, extent - high - low)
            for side in ((0, low), (extent - high, high)):
                ranges = [*inside[:place], side, *whole[place + 1 :]]
                if all(count != 0 for _, count in ranges):
                    slabs.append(_slab(ranges, strides))
        return slabs


def pad_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> PadNest | None:
    """Return the only op of the group, if it is a padding of numbers to a known or open shape."""
    op = group.body.block.first_op
    if not isinstance(op, PadOp) or op.next_op is not group.terminator or len(group.results) != 1:
        return None
    operand, result = extents_of(op.input), extents_of(op.output)
    if not is_number(element_type_of(op.output)) or DYNAMIC in result:
        return None
    low, high = op.low.get_values(), op.high.get_values()
    sides = zip(operand, low, high, strict=True)
    if tuple(extent + before + after for extent, before, after in sides) != tuple(result):
        return None
    return PadNest(operand, result, tuple(low), tuple(high), op.value.value.data)


def _slab(ranges: Sequence[Range], strides: Sequence[Extent]) -> Slab:
    start = sum(first * stride for (first, _), stride in zip(ranges, strides, strict=True))
    loops = [
        LoopDim[Extent](count, (stride,))
        for (_, count), stride in zip(ranges, strides, strict=True)
    ]
    return Slab(start, merged(loops) or (LoopDim(1, (1,)),))
