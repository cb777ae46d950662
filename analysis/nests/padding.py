"""Nests of paddings: the operand inside of the result, and the border around it in slabs."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import LoopDim, merged, row_major_strides
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_number
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp

Range = tuple[int, int]
"""The first position along a dim, and the one after the last."""


@dataclass(frozen=True)
class Slab:
    """A part of the border: loops over it (one stride each), from an element on."""

    start: int
    dims: tuple[LoopDim, ...]


def match_padding(group: FusedOp) -> PadOp | None:
    """Return the only op of the group, if it is a padding of numbers."""
    op = group.body.block.first_op
    if not isinstance(op, PadOp) or op.next_op is not group.terminator or len(group.results) != 1:
        return None
    return op if is_number(element_type_of(op.output)) else None


def fits(op: PadOp, choice: LayoutChoice) -> bool:
    """Return whether both sides have one layout, in which no block is padded."""
    layout = choice.results[0]
    if choice.operands[0] != layout:
        return False
    sides = zip(op.low.get_values(), op.high.get_values(), shape_of(op.input), strict=True)
    return all(
        layout.block(dim) == 1 or (low == high == 0 and extent % layout.block(dim) == 0)
        for dim, (low, high, extent) in enumerate(sides)
    )


def inside(op: PadOp, layout: Layout) -> tuple[int, tuple[LoopDim, ...]]:
    """Return where the operand begins in the result, and loops with strides in both."""
    extents = layout.storage_shape(shape_of(op.input))
    strides = layout.storage_strides(shape_of(op.output))
    start = sum(
        op.low.get_values()[dim.dim] * stride
        for dim, stride in zip(layout.dims, strides, strict=True)
        if dim.extent is None
    )
    pairs = zip(row_major_strides(extents), strides, strict=True)
    dims = merged([LoopDim(extent, pair) for extent, pair in zip(extents, pairs, strict=True)])
    return start, dims or (LoopDim(1, (1, 1)),)


def border(op: PadOp, layout: Layout) -> list[Slab]:
    """Return the border, each element once: before and after the inside along each storage dim.

    Along the dims outside of that, a slab is as long as the inside, along those inside of it as
    long as the whole.
    """
    shape = shape_of(op.output)
    strides = layout.storage_strides(shape)
    whole: list[Range] = [(0, extent) for extent in layout.storage_shape(shape)]
    inside = list(whole)
    for place, dim in enumerate(layout.dims):
        if dim.extent is None:
            low = op.low.get_values()[dim.dim] // dim.step
            high = op.high.get_values()[dim.dim] // dim.step
            inside[place] = (low, whole[place][1] - high)
    slabs: list[Slab] = []
    for place, (begin, end) in enumerate(inside):
        for side in ((0, begin), (end, whole[place][1])):
            ranges = [*inside[:place], side, *whole[place + 1 :]]
            if all(first < last for first, last in ranges):
                slabs.append(_slab(ranges, strides))
    return slabs


def _slab(ranges: Sequence[Range], strides: Sequence[int]) -> Slab:
    start = sum(first * stride for (first, _), stride in zip(ranges, strides, strict=True))
    loops = [
        LoopDim(last - first, (stride,))
        for (first, last), stride in zip(ranges, strides, strict=True)
    ]
    return Slab(start, merged(loops) or (LoopDim(1, (1,)),))
