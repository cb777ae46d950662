"""Writing the border of a padding."""

from collections.abc import Sequence

from braid.analysis.nests.dims import LoopDim
from braid.analysis.nests.padding import Slab, border
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import PadOp
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.rows import each


def write_border(e: Emitter, op: PadOp, layout: Layout, buffer: Buffer) -> None:
    """Writes the padding value around the inside of the result of `op`, which is in `buffer`."""
    value = e.constant(op.value.value.data, e.vector_type(element_type_of(op.output)))
    for slab in border(op, layout):
        _fill_slab(e, buffer, slab, value)


def _fill_slab(e: Emitter, buffer: Buffer, slab: Slab, value: Value) -> None:
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
