"""The border of a padding, in slabs that are loop nests over storage."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import LoopDim, merged
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import PadOp
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.rows import each

Range = tuple[int, int]
"""The first position along a dim, and the one after the last."""


def write_border(e: Emitter, op: PadOp, layout: Layout, buffer: Buffer) -> None:
    """Writes the padding value around the inside of the result of `op`, which is in `buffer`."""
    value = e.constant(op.value.value.data, e.vector_type(element_type_of(op.output)))
    for slab in _slabs(op, layout):
        _fill_slab(e, buffer, slab, value)


@dataclass(frozen=True)
class _Slab:
    """A part of the border: loops over it (one stride each), from an element on."""

    start: int
    dims: tuple[LoopDim, ...]


def _slabs(op: PadOp, layout: Layout) -> list[_Slab]:
    """The border, each element once: before and after the inside along each dim of storage.

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
    slabs: list[_Slab] = []
    for place, (begin, end) in enumerate(inside):
        for side in ((0, begin), (end, whole[place][1])):
            ranges = [*inside[:place], side, *whole[place + 1 :]]
            if all(first < last for first, last in ranges):
                slabs.append(_slab(ranges, strides))
    return slabs


def _slab(ranges: Sequence[Range], strides: Sequence[int]) -> _Slab:
    start = sum(first * stride for (first, _), stride in zip(ranges, strides, strict=True))
    loops = [
        LoopDim(last - first, (stride,))
        for (first, last), stride in zip(ranges, strides, strict=True)
    ]
    return _Slab(start, merged(loops) or (LoopDim(1, (1,)),))


def _fill_slab(e: Emitter, buffer: Buffer, slab: _Slab, value: Value) -> None:
    """Writes `value` to all elements of a slab."""
    *outer, inner = slab.dims
    if inner.strides != (1,):
        outer, inner = [*outer, inner], LoopDim(1, (1,))

    def rows(dims: Sequence[LoopDim], base: Index) -> None:
        if dims:
            step = dims[0].strides[0]
            e.loop(0, dims[0].extent, 1, lambda i: rows(dims[1:], e.add(base, e.mul(i, step))))
            return
        each(e, inner.extent, lambda i, mask: buffer.store(e, value, e.add(base, i), mask))

    rows(outer, slab.start)
