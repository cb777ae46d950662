"""Memory of a tiled kernel: places in its arguments and its scratch, and copies between them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerType, MemRefType, i64
from xdsl.ir import SSAValue

from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.lowering.cpu.kernels.groups.loop_dims import LoopDim, merged
from braid.lowering.cpu.kernels.transpose.loops import TransposeLoops


@dataclass(frozen=True)
class Place:
    """The byte `offset` of a buffer of bytes."""

    base: SSAValue
    offset: Index

    def view(self, e: Emitter, type: MemRefType[Any]) -> Value:
        """The memory from here on as a buffer of this type."""
        return e.insert(memref.ViewOp(self.base, e.index(self.offset), (), type))

    def elements(self, e: Emitter, bytes: int, count: int) -> Buffer:
        """The next `count` elements of so many bytes each, whatever they mean."""
        element_type = IntegerType(8 * bytes)
        return Buffer(self.view(e, MemRefType(element_type, [count])), element_type)

    def plus(self, e: Emitter, bytes: Index) -> "Place":
        """So many bytes further on."""
        return Place(self.base, e.add(self.offset, bytes))


@dataclass(frozen=True)
class Strided:
    """Elements of a buffer from its first one on, and how far neighbours along a dim are apart."""

    buffer: Buffer
    strides: tuple[int, ...]


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last one of a strided array."""
    return 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


def copy_elements(e: Emitter, source: Strided, target: Strided, shape: Sequence[int]) -> None:
    """Copies an array of this shape, by vectors where elements are neighbours on either side."""
    columns = zip(source.strides, target.strides, strict=True)
    dims = [LoopDim(n, pair) for n, pair in zip(shape, columns, strict=True)]
    dims = merged(sorted(dims, key=lambda dim: -dim.strides[1])) or (LoopDim(1, (1, 1)),)
    buffers = (source.buffer, target.buffer)
    lines = next((dim for dim in dims[:-1] if dim.strides[0] == 1), None)
    if lines is None or dims[-1].strides[1] != 1:
        _copy(e, dims, buffers, (0, 0))
        return
    outer = tuple(dim for dim in dims[:-1] if dim is not lines)
    chunk = -(-max(lines.extent, dims[-1].extent) // e.lanes) * e.lanes
    loops = TransposeLoops(outer, lines, dims[-1], e.lanes, chunk)
    e.loop(0, math.prod(loops.grid_extents), 1, lambda i: loops.iteration(e, buffers, i))


def _copy(
    e: Emitter, dims: Sequence[LoopDim], buffers: tuple[Buffer, Buffer], at: tuple[Index, Index]
) -> None:
    dim, source, target = dims[0], *buffers

    def moved(position: Index) -> tuple[Index, Index]:
        read, written = (e.add(a, e.mul(position, s)) for a, s in zip(at, dim.strides, strict=True))
        return read, written

    def element(position: Index) -> None:
        read, written = moved(position)
        value = source.load_scalar(e, read)
        e.effect(memref.StoreOp.get(value, target.ref, [e.index(written)]))

    def vector(position: Index, mask: Value | None = None) -> None:
        read, written = moved(position)
        target.store(e, source.load(e, read, mask), written, mask)

    if len(dims) > 1:
        e.loop(0, dim.extent, 1, lambda i: _copy(e, dims[1:], buffers, moved(i)))
    elif dim.strides == (1, 1):
        whole = dim.extent - dim.extent % e.lanes
        if whole:
            e.loop(0, whole, e.lanes, vector)
        if whole < dim.extent:
            vector(whole, e.mask(dim.extent - whole))
    else:
        e.loop(0, dim.extent, 1, element)


class Notes:
    """Numbers that a kernel keeps in its scratch memory from one tile to the next."""

    def __init__(self, e: Emitter, place: Place, count: int) -> None:
        self._e = e
        self._count = count
        self._cells = place.view(e, MemRefType(i64, [count]))

    def forget(self, first: int = 0) -> None:
        """Makes all numbers from `first` on unequal to any other."""
        for number in range(first, self._count):
            self._store(number, self._e.constant(-1, i64))

    def when_new(self, number: int, value: Index, body: Callable[[], None]) -> None:
        """Runs `body` unless note `number` is `value`, and notes it."""
        e = self._e
        wanted = e.insert(arith.IndexCastOp(e.index(value), i64))
        known = e.insert(memref.LoadOp.get(self._cells, [e.index(number)]))
        changed = e.insert(arith.CmpiOp(known, wanted, "ne"))

        def renew() -> None:
            body()
            self._store(number, wanted)

        e.when(changed, renew)

    def _store(self, number: int, value: Value) -> None:
        e = self._e
        e.effect(memref.StoreOp.get(value, self._cells, [e.index(number)]))
