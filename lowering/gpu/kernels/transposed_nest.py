"""Elementwise nests whose operand lies along another dim than the result: a block of both a thread.

A thread reads a block by accesses along the operand's inner dim, computes, and writes it by
accesses along the result's, each as wide as its rows allow, at best 16 bytes: the exchange is one
of registers, so that no shared memory, with its banks and barriers, is in between. Of a warp's
threads 4 are next to each other along the operand's dim and 8 along the result's, and of a block's
warps 4 along the result's: they read and write whole sectors of 32 bytes, and lines of caches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.tensor_loops import delinearized, index_constant
from braid.lowering.gpu.aligned_entries import is_aligned
from braid.lowering.gpu.kernels.linear_access import LinearAccess, flat_view, merged_dims
from braid.lowering.gpu.kernels.thread_nests import ThreadNest, global_thread
from braid.lowering.gpu.kernels.wide_access import (
    ACCESS_BYTES,
    compute,
    element_of,
    load_vector,
    store_vector,
)

_READING = 4
"""Threads of a warp that are next to each other along the operand's inner dim."""
_TOGETHER = 4
"""Warps that are next to each other along the result's, if there are multiples of them."""
_WARP = 32
_LEAST_WIDTH = 2


@dataclass(frozen=True)
class TransposedNest:
    """A nest of which a thread computes `widths` points: as many as it reads, and writes, at once.

    `extents` are those of the nest's dims, where dims that go on where the one behind them ends are
    one. Neighbours in the operand `number`, which is read as `read`, lie along the dim `inner`, and
    those in the result along `last`.
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
        """The nest by blocks; None where accesses would not be wider than an element."""
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
        if min(widths) < _LEAST_WIDTH:
            return None
        return TransposedNest(nest, number, extents, read, written, inner, last, widths)

    @property
    def _reading(self) -> int:
        """Threads that are next to each other along the operand's inner dim."""
        return min(_READING, 1 << (self.extents[self.inner] // self.widths[0] - 1).bit_length())

    @property
    def _blocks(self) -> tuple[int, int]:
        """Of a warp: along the operand's inner dim, and along the result's."""
        warp = (self._reading, _WARP // self._reading)
        dims = (self.inner, self.last)
        return cast(
            "tuple[int, int]",
            tuple(
                -(-self.extents[dim] // (width * n))
                for dim, width, n in zip(dims, self.widths, warp, strict=True)
            ),
        )

    @property
    def _others(self) -> list[int]:
        return [dim for dim in range(len(self.extents)) if dim not in (self.inner, self.last)]

    @property
    def threads(self) -> int:
        """How many threads have work, whole warps of them."""
        return prod(self.extents[dim] for dim in self._others) * prod(self._blocks) * _WARP

    def emit(self, builder: Builder, threads: int) -> None:
        """The code of one thread, of which there are `threads` in a block."""
        index = global_thread(builder, threads)
        others, last = self._others, self.last
        reading, writing = self._reading, _WARP // self._reading
        counts = [self.extents[dim] for dim in others]
        in_blocks, out_blocks = self._blocks
        together = gcd(_TOGETHER, out_blocks)
        bound = [prod(counts) or 1, out_blocks // together, in_blocks, together, writing, reading]
        whole, many, in_block, one, out, inside = delinearized(builder, index, bound)
        out_block = _add(builder, _mul(builder, many, together), one)
        point = dict(zip(others, delinearized(builder, whole, counts), strict=True))
        for dim, block, own, count, width in (
            (last, out_block, out, writing, self.widths[1]),
            (self.inner, in_block, inside, reading, self.widths[0]),
        ):
            number = _add(builder, _mul(builder, block, count), own)
            point[dim] = _mul(builder, number, width)
        fits = builder.insert(
            arith.CmpiOp(index, index_constant(builder, self.threads), "ult")
        ).result
        for dim in (last, self.inner):
            limit = index_constant(builder, self.extents[dim])
            below = builder.insert(arith.CmpiOp(point[dim], limit, "ult")).result
            fits = builder.insert(arith.AndIOp(fits, below)).result
        end = scf.YieldOp()
        builder.insert(scf.IfOp(fits, (), [Block([end])]))
        self._emit_block(Builder(InsertPoint.before(end)), point)

    def _emit_block(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        first, second = scf.YieldOp(), scf.YieldOp()
        aligned = is_aligned(builder)
        builder.insert(scf.IfOp(aligned, (), [Block([first])], [Block([second])]))
        self._emit_wide(Builder(InsertPoint.before(first)), point)
        self._emit_single(Builder(InsertPoint.before(second)), point)

    @property
    def _operand(self) -> SSAValue:
        return self.nest.inputs[self.number]

    def _emit_wide(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        last = self.last
        reading, writing = self.widths
        source, target = self._memory(builder)
        rows: list[SSAValue] = []
        for n in range(writing):
            own = {**point, last: _behind(builder, point[last], n)}
            rows.append(load_vector(builder, source, self._place(builder, self.read, own), reading))
        argument = self.nest.body.block.args[self.number]
        for n in range(reading):
            own = {**point, self.inner: _behind(builder, point[self.inner], n)}
            column = [element_of(builder, row, n) for row in rows]
            made = [compute(builder, self.nest, {argument: value})[0] for value in column]
            store_vector(builder, made, target, self._place(builder, self.written, own))

    def _emit_single(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        """Element by element, where buffers begin anywhere."""
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
        source, target = self._memory(inside)
        place = self._place(inside, self.read, own)
        value = inside.insert(memref.LoadOp.get(source, [place])).res
        argument = self.nest.body.block.args[self.number]
        (made,) = compute(inside, self.nest, {argument: value})
        written = self._place(inside, self.written, own)
        inside.insert(memref.StoreOp.get(made, target, [written]))

    def _memory(self, builder: Builder) -> tuple[SSAValue, SSAValue]:
        return flat_view(builder, self._operand), flat_view(builder, self.nest.outputs[0])

    def _place(
        self, builder: Builder, access: LinearAccess, point: dict[int, SSAValue]
    ) -> SSAValue:
        return access.index(builder, [point[dim] for dim in range(len(self.extents))])


def _width(most: int, access: LinearAccess, dim: int, extents: Sequence[int]) -> int:
    """How many neighbours along a dim are accessed at once: whole groups of them."""
    width = access.width(most, dim, extents)
    while extents[dim] % width:
        width //= 2
    return width


def _is_permutation(map: AffineMap) -> bool:
    """Whether a map lists each of its dims once."""
    dims = [expr.position for expr in map.results if isinstance(expr, AffineDimExpr)]
    return len(dims) == len(map.results) and sorted(dims) == list(range(map.num_dims))


def _behind(builder: Builder, index: SSAValue, number: int) -> SSAValue:
    return _add(builder, index, index_constant(builder, number)) if number else index


def _add(builder: Builder, a: SSAValue, b: SSAValue) -> SSAValue:
    return builder.insert(arith.AddiOp(a, b)).result


def _mul(builder: Builder, a: SSAValue, number: int) -> SSAValue:
    return builder.insert(arith.MuliOp(a, index_constant(builder, number))).result
