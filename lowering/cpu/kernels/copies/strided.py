"""Copies between arrays that are stored with other strides."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import LoopDim, merged
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.kernels.copies.transpose import TransposeLoops
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.rows import each
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Strided:
    """Elements of a buffer from its first one on, and how far neighbours along a dim are apart."""

    buffer: Buffer
    strides: tuple[int, ...]


def copy_elements(e: Emitter, source: Strided, target: Strided, shape: Sequence[int]) -> None:
    """Copy an array of this shape, by vectors where elements are neighbours on either side."""
    columns = zip(source.strides, target.strides, strict=True)
    dims = [LoopDim(n, pair) for n, pair in zip(shape, columns, strict=True)]
    dims = merged(sorted(dims, key=lambda dim: -dim.strides[1])) or (LoopDim(1, (1, 1)),)
    buffers = (source.buffer, target.buffer)
    lines = next((dim for dim in dims[:-1] if dim.strides[0] == 1), None)
    if lines is None or dims[-1].strides[1] != 1:
        copy_loops(e, dims, buffers, (0, 0))
        return
    outer = tuple(dim for dim in dims[:-1] if dim is not lines)
    chunk = -(-max(lines.extent, dims[-1].extent) // e.lanes) * e.lanes
    loops = TransposeLoops(outer, lines, dims[-1], e.lanes, chunk)
    e.loop(0, loops.grid, 1, lambda i: loops.iteration(e, buffers, i))


def copy_loops(
    e: Emitter,
    dims: Sequence[LoopDim[Extent]],
    buffers: tuple[Buffer, Buffer],
    at: tuple[Index, Index],
) -> None:
    """Copy by loops over `dims`, which have strides in source and target, in their order.

    `buffers` are source and target, `at` is where the first element is in each.
    """
    dim, source, target = dims[0], *buffers

    def moved(position: Index) -> tuple[Index, Index]:
        read, written = (e.add(a, e.mul(position, s)) for a, s in zip(at, dim.strides, strict=True))
        return read, written

    def element(position: Index) -> None:
        read, written = moved(position)
        value = source.load_scalar(e, read)
        e.effect(memref.StoreOp.get(value, target.ref, [e.index(written)]))

    def vector(position: Index, mask: Value | None) -> None:
        read, written = moved(position)
        target.store(e, source.load(e, read, mask), written, mask)

    if len(dims) > 1:
        e.loop(0, dim.extent, 1, lambda i: copy_loops(e, dims[1:], buffers, moved(i)))
    elif dim.strides == (1, 1):
        each(e, dim.extent, vector)
    else:
        e.loop(0, dim.extent, 1, element)
