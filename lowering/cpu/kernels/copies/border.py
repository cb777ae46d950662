"""Writing the border of a padding."""

from collections.abc import Sequence

from braid.analysis.nests.dims import LoopDim
from braid.analysis.nests.padding import PadNest, Slab
from braid.dialects.braid.layout import Layout
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.rows import each
from braid.support.sizes.expression import Extent


def write_border(e: Emitter, nest: PadNest, layout: Layout, buffer: Buffer) -> None:
    """Write the padding value around the inside of the result `buffer`."""
    value = e.constant(nest.value, e.vector_type(buffer.element_type))
    for slab in nest.border(layout):
        _fill_slab(e, buffer, slab, value)


def _fill_slab(e: Emitter, buffer: Buffer, slab: Slab, value: Value) -> None:
    """Write `value` to all elements of a slab."""
    *outer, inner = slab.dims
    if inner.strides != (1,):
        outer, inner = [*outer, inner], LoopDim[Extent](1, (1,))

    def rows(dims: Sequence[LoopDim[Extent]], base: Index) -> None:
        if dims:
            step = dims[0].strides[0]
            e.loop(0, dims[0].extent, 1, lambda i: rows(dims[1:], e.add(base, e.mul(i, step))))
            return
        each(e, inner.extent, lambda i, mask: buffer.store(e, value, e.add(base, i), mask))

    rows(outer, slab.start)
