"""Elementwise nests whose operand lies along another dim than the result: a block of both a thread.

A thread reads a square of points by accesses along the operand's inner dim, each as wide as its
rows allow, at best 16 bytes, and turns it in registers. Threads of a tile then exchange their
elements through shared memory, by whole accesses, so that both reads and writes are cache lines.
Where an access lies in a line of shared memory depends on the line: those that 8 threads write, or
read, at once are in different banks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, StringAttr, UnitAttr, i1, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.tensor_loops import delinearized, index_constant
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.launch.entries import READING_BLOCKS
from braid.lowering.gpu.launch.launches import THREADS
from braid.lowering.gpu.nests.linear_access import LinearAccess, flat_view, merged_dims
from braid.lowering.gpu.nests.thread_nests import ThreadNest, global_thread
from braid.lowering.gpu.nests.wide_access import (
    ACCESS_BYTES,
    compute,
    element_of,
    load_vector,
    store_vector,
)

_SIDE = 16
"""Threads of a tile along each of both dims, at most."""
_BANKS = 8
"""Accesses of 16 bytes to shared memory at once."""
_SHARED_BYTES = 32768
"""The most bytes of shared memory of a block."""
_SQUARE_BYTES = 512
"""The most bytes of a thread's results, which are in registers."""
_LEAST_WIDTH = 2


@dataclass(frozen=True)
class TransposedNest:
    """A nest of which a thread computes `widths` points: as many as it reads, and writes, at once.

    `extents` are those of the nest's dims, after merging dims that are contiguous. Neighbours in
    the operand `number`, which is read as `read`, lie along the dim `inner`, and those in the
    result along `last`.
    """

    nest: linalg.GenericOp
    number: int
    extents: tuple[int, ...]
    read: LinearAccess
    written: LinearAccess
    inner: int
    last: int
    widths: tuple[int, int]

    @staticmethod
    def of(own: ThreadNest) -> "TransposedNest | None":
        """Return the nest by blocks; None where accesses would not be wider than an element."""
        nest = own.nest
        if own.reduced or not isinstance(nest, linalg.GenericOp) or own.points < 2:
            return None
        if any(isinstance(op, linalg.IndexOp) for op in nest.body.block.ops):
            return None
        used = [n for n in range(len(nest.inputs)) if nest.body.block.args[n].uses]
        if len(used) != 1 or len(nest.outputs) != 1 or nest.body.block.args[-1].uses:
            return None
        (number,) = used
        maps = (own.maps[number], own.maps[-1])
        if not all(map(_is_permutation, maps)):
            return None
        buffers = (nest.inputs[number], nest.outputs[0])
        found = [LinearAccess.of(buffer, map) for buffer, map in zip(buffers, maps, strict=True)]
        known = [access for access in found if access is not None]
        types = [cast(MemRefType[Any], buffer.type).element_type for buffer in buffers]
        if len(known) < len(found) or i1 in types:
            return None
        dims = merged_dims(own.extents, known)
        extents = tuple(prod(own.extents[dim] for dim in each) for each in dims)
        read, written = (access.merged(dims) for access in known)
        inner, last = (
            access.steps.index(1) if 1 in access.steps else None for access in (read, written)
        )
        if inner is None or last is None or inner == last:
            return None
        most = ACCESS_BYTES // min(map(bytes_of, types))
        widths = (
            _width(most, read, inner, extents),
            _width(most, written, last, extents),
        )
        while prod(widths) * bytes_of(types[1]) > _SQUARE_BYTES:
            widths = (widths[0] // 2, widths[1])
        if min(widths) < _LEAST_WIDTH:
            return None
        return TransposedNest(nest, number, extents, read, written, inner, last, widths)

    @property
    def _tile(self) -> tuple[int, int]:
        """Threads of a tile along the operand's inner dim, and along the result's."""
        counts = (
            self.extents[dim] // width
            for dim, width in zip((self.inner, self.last), self.widths, strict=True)
        )
        inner, last = (min(_SIDE, 1 << (count - 1).bit_length()) for count in counts)
        return min(inner, _SHARED_BYTES // (last * self._bytes)), last

    @property
    def _tiles(self) -> tuple[int, ...]:
        """Tiles of all other dims, along the operand's inner dim, and along the result's."""
        dims = zip((self.inner, self.last), self.widths, self._tile, strict=True)
        inner, last = (-(-self.extents[dim] // (width * side)) for dim, width, side in dims)
        return prod(self.extents[dim] for dim in self._others), inner, last

    @property
    def _others(self) -> list[int]:
        return [dim for dim in range(len(self.extents)) if dim not in (self.inner, self.last)]

    @property
    def threads(self) -> int:
        """Return the number of threads that have work, in whole tiles."""
        return prod(self._tiles) * prod(self._tile)

    @property
    def block(self) -> int:
        """Threads of a block."""
        return min(THREADS, _SHARED_BYTES // self._bytes)

    @property
    def computes(self) -> bool:
        """Return whether elements are more than moved."""
        return len(self.nest.body.block.ops) > 1

    @property
    def blocks(self) -> int:
        """Blocks that fit a multiprocessor at least, with the registers that computing a square
        needs.
        """
        return 1 if bytes_of(self._element) > 4 else READING_BLOCKS // 2

    @property
    def _element(self) -> Any:
        return cast(MemRefType[Any], self.nest.outputs[0].type).element_type

    @property
    def _bytes(self) -> int:
        """Bytes of a thread's results."""
        return prod(self.widths) * bytes_of(self._element)

    @property
    def _shared_type(self) -> MemRefType[Any]:
        size = self.block * prod(self.widths)
        return MemRefType(self._element, [size], memory_space=IntegerAttr(3, i64))

    def shared(self, entry: str) -> memref.GlobalOp:
        """Return the memory in which the threads of an entry's blocks exchange their results."""
        name, private = StringAttr(_shared_symbol(entry)), StringAttr("private")
        return memref.GlobalOp.get(name, self._shared_type, UnitAttr(), sym_visibility=private)

    def emit(self, builder: Builder, threads: int) -> None:
        """Emit the code of one thread; a block has `threads` of them, as many as `block`."""
        first, second = scf.YieldOp(), scf.YieldOp()
        aligned = is_aligned(builder)
        builder.insert(scf.IfOp(aligned, (), [Block([first])], [Block([second])]))
        self._emit_wide(Builder(InsertPoint.before(first)), threads)
        single = Builder(InsertPoint.before(second))
        _, point = self._square(single, global_thread(single, threads), 0)
        self._emit_single(self._where_inside(single, point), point)

    def _emit_wide(self, builder: Builder, threads: int) -> None:
        """Read the square of the thread, and write that whose results it gets from others."""
        index = global_thread(builder, threads)
        parent = builder.insertion_point.block.parent_op()
        while not isinstance(parent, gpu.FuncOp):
            assert parent is not None
            parent = parent.parent_op()
        name = _shared_symbol(parent.sym_name.data)
        shared = builder.insert(memref.GetGlobalOp(name, self._shared_type)).memref
        own, point = self._square(builder, index, 0)
        self._read_square(self._where_inside(builder, point), point, shared, own)
        builder.insert(gpu.BarrierOp())
        own, point = self._square(builder, index, 1)
        self._write_square(self._where_inside(builder, point), point, shared, own)

    def _square(
        self, builder: Builder, index: SSAValue, fastest: int
    ) -> tuple[SSAValue, dict[int, SSAValue]]:
        """Return where a thread's square begins: in shared memory, and in the nest.

        The next thread has the next square along the operand's inner dim, or with `fastest` 1 along
        the result's.
        """
        inner, last = self._tile
        sides = (inner, last) if fastest else (last, inner)
        whole, *tile, slow, fast = delinearized(builder, index, [*self._tiles, *sides])
        own = (slow, fast) if fastest else (fast, slow)
        counts = [self.extents[dim] for dim in self._others]
        point = dict(zip(self._others, delinearized(builder, whole, counts), strict=True))
        dims = zip((self.inner, self.last), tile, self._tile, own, self.widths, strict=True)
        for dim, number, side, place, width in dims:
            square = _add(builder, _mul(builder, number, side), place)
            point[dim] = _mul(builder, square, width)
        return self._place_in_shared(builder, index, own), point

    def _place_in_shared(
        self, builder: Builder, index: SSAValue, own: tuple[SSAValue, SSAValue]
    ) -> SSAValue:
        """Return the address in shared memory: lines of a tile follow each other, as a square reads
        them.
        """
        inner, last = self._tile
        tiles = index_constant(builder, self.block // (inner * last))
        number = builder.insert(arith.DivUIOp(index, index_constant(builder, inner * last))).result
        number = builder.insert(arith.RemUIOp(number, tiles)).result
        turn = index_constant(builder, min(_BANKS, last) - 1)
        turned = builder.insert(arith.AndIOp(own[0], turn)).result
        piece = builder.insert(arith.XOrIOp(own[1], turned)).result
        line = _mul(builder, _add(builder, _mul(builder, number, inner), own[0]), self.widths[0])
        return _mul(builder, _add(builder, _mul(builder, line, last), piece), self.widths[1])

    def _in_line(self, builder: Builder, place: SSAValue, number: int) -> SSAValue:
        """Return the place that lies `number` lines of shared memory further."""
        return _index_plus(builder, place, number * self._tile[1] * self.widths[1])

    def _read_square(
        self, builder: Builder, point: dict[int, SSAValue], shared: SSAValue, place: SSAValue
    ) -> None:
        inner, last = self.widths
        source = flat_view(builder, self._operand)
        rows: list[SSAValue] = []
        for n in range(last):
            own = {**point, self.last: _index_plus(builder, point[self.last], n)}
            rows.append(load_vector(builder, source, self._place(builder, self.read, own), inner))
        argument = self.nest.body.block.args[self.number]
        for n in range(inner):
            column = [element_of(builder, row, n) for row in rows]
            made = [
                compute(builder, self.nest.body.block, {argument: value})[0] for value in column
            ]
            store_vector(builder, made, shared, self._in_line(builder, place, n))

    def _write_square(
        self, builder: Builder, point: dict[int, SSAValue], shared: SSAValue, place: SSAValue
    ) -> None:
        inner, last = self.widths
        target = flat_view(builder, self.nest.outputs[0])
        for n in range(inner):
            own = {**point, self.inner: _index_plus(builder, point[self.inner], n)}
            made = load_vector(builder, shared, self._in_line(builder, place, n), last)
            lanes = [element_of(builder, made, lane) for lane in range(last)]
            store_vector(builder, lanes, target, self._place(builder, self.written, own))

    def _where_inside(self, builder: Builder, point: dict[int, SSAValue]) -> Builder:
        """Return the code for threads that have a whole square, since widths divide extents."""
        bounds = [(point[dim], self.extents[dim]) for dim in (self.last, self.inner)]
        if self.threads % self.block:
            bounds.append((global_thread(builder, self.block), self.threads))
        checks = [
            builder.insert(arith.CmpiOp(value, index_constant(builder, bound), "ult")).result
            for value, bound in bounds
        ]
        fits = reduce(lambda a, b: builder.insert(arith.AndIOp(a, b)).result, checks)
        end = scf.YieldOp()
        builder.insert(scf.IfOp(fits, (), [Block([end])]))
        return Builder(InsertPoint.before(end))

    @property
    def _operand(self) -> SSAValue:
        return self.nest.inputs[self.number]

    def _emit_single(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        """Compute element by element, where buffers begin anywhere."""
        own = dict(point)
        inside = builder
        zero, one = (index_constant(builder, n) for n in (0, 1))
        limits = [index_constant(builder, width) for width in self.widths]
        for dim, limit in zip((self.inner, self.last), limits, strict=True):
            end = scf.YieldOp()
            body = Block([end], arg_types=[IndexType()])
            inside.insert(scf.ForOp(zero, limit, one, (), body))
            inside = Builder(InsertPoint.before(end))
            own[dim] = _add(inside, point[dim], body.args[0])
        source, target = flat_view(inside, self._operand), flat_view(inside, self.nest.outputs[0])
        place = self._place(inside, self.read, own)
        value = inside.insert(memref.LoadOp.get(source, [place])).res
        argument = self.nest.body.block.args[self.number]
        (made,) = compute(inside, self.nest.body.block, {argument: value})
        written = self._place(inside, self.written, own)
        inside.insert(memref.StoreOp.get(made, target, [written]))

    def _place(
        self, builder: Builder, access: LinearAccess, point: dict[int, SSAValue]
    ) -> SSAValue:
        return access.index(builder, [point[dim] for dim in range(len(self.extents))])


def _shared_symbol(entry: str) -> str:
    return f"{entry}_shared"


def _width(most: int, access: LinearAccess, dim: int, extents: Sequence[int]) -> int:
    """Return how many neighbours along a dim are accessed at once: whole groups."""
    width = access.width(most, dim, extents)
    while extents[dim] % width:
        width //= 2
    return width


def _is_permutation(map: AffineMap) -> bool:
    """Return whether a map lists each of its dims once."""
    dims = [expr.position for expr in map.results if isinstance(expr, AffineDimExpr)]
    return len(dims) == len(map.results) and sorted(dims) == list(range(map.num_dims))


def _index_plus(builder: Builder, index: SSAValue, number: int) -> SSAValue:
    return _add(builder, index, index_constant(builder, number)) if number else index


def _add(builder: Builder, a: SSAValue, b: SSAValue) -> SSAValue:
    return builder.insert(arith.AddiOp(a, b)).result


def _mul(builder: Builder, a: SSAValue, number: int) -> SSAValue:
    return builder.insert(arith.MuliOp(a, index_constant(builder, number))).result
