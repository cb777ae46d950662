"""Elementwise nests whose operand lies along another dim than the result: a block of both a thread.

A thread reads a square block by accesses along the operand's inner dim, computes, and writes it by
accesses along the result's, both 16 bytes wide: the exchange is one of registers, so that no shared
memory, with its banks and barriers, is in between. Of a warp's threads 8 are next to each other
along the operand's dim and 4 along the result's: they read and write whole sectors of 32 bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
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
from braid.lowering.gpu.kernels.thread_nests import ThreadNest, global_thread
from braid.lowering.gpu.kernels.wide_access import (
    ACCESS_BYTES,
    compute,
    element_of,
    load_vector,
    store_vector,
)

_READING = 8
"""Threads of a warp that are next to each other along the operand's inner dim."""
_WARP = 32
_LEAST_WIDTH = 2


@dataclass(frozen=True)
class TransposedNest:
    """A nest of which a thread computes `width` by `width` points.

    `inner` is the dim of the nest along which neighbours in the operand lie, and `order` the dims
    of the nest for those of the operand.
    """

    nest: linalg.GenericOp
    number: int
    extents: tuple[int, ...]
    order: tuple[int, ...]
    inner: int
    width: int

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
        (number,), last = used, len(own.extents) - 1
        order = _permutation(own.maps[number])
        if order is None or own.maps[-1] != AffineMap.identity(len(own.extents)):
            return None
        buffers = (nest.inputs[number], nest.outputs[0])
        strides = [_strides(buffer) for buffer in buffers]
        inner = next(
            (d for d, s in zip(order, strides[0], strict=True) if s == 1 and own.extents[d] > 1),
            last,
        )
        if inner == last or strides[1][last] != 1:
            return None
        types = [cast(MemRefType[Any], buffer.type).element_type for buffer in buffers]
        whole = [own.extents[inner], own.extents[last]]
        whole += [s for each in strides for s in each if s != 1]
        width = ACCESS_BYTES // min(map(bytes_of, types))
        while any(extent % width for extent in whole):
            width //= 2
        if width < _LEAST_WIDTH or i1 in types:
            return None
        return TransposedNest(nest, number, own.extents, order, inner, width)

    @property
    def _reading(self) -> int:
        """Threads that are next to each other along the operand's inner dim."""
        return min(_READING, 1 << (self.extents[self.inner] // self.width - 1).bit_length())

    @property
    def _blocks(self) -> tuple[int, int]:
        """Of a warp: along the operand's inner dim, and along the result's."""
        warp = (self._reading, _WARP // self._reading)
        dims = (self.inner, len(self.extents) - 1)
        return cast(
            "tuple[int, int]",
            tuple(
                -(-self.extents[dim] // (self.width * n)) for dim, n in zip(dims, warp, strict=True)
            ),
        )

    @property
    def _others(self) -> list[int]:
        return [dim for dim in range(len(self.extents) - 1) if dim != self.inner]

    @property
    def threads(self) -> int:
        """How many threads have work, whole warps of them."""
        return prod(self.extents[dim] for dim in self._others) * prod(self._blocks) * _WARP

    def emit(self, builder: Builder, threads: int) -> None:
        """The code of one thread, of which there are `threads` in a block."""
        index = global_thread(builder, threads)
        others, last = self._others, len(self.extents) - 1
        reading, writing = self._reading, _WARP // self._reading
        counts = [self.extents[dim] for dim in others]
        bound = [prod(counts) or 1, *self._blocks[::-1], writing, reading]
        whole, out_block, in_block, out, inside = delinearized(builder, index, bound)
        point = dict(zip(others, delinearized(builder, whole, counts), strict=True))
        for dim, block, own, count in (
            (last, out_block, out, writing),
            (self.inner, in_block, inside, reading),
        ):
            number = _add(builder, _mul(builder, block, count), own)
            point[dim] = _mul(builder, number, self.width)
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
        last = len(self.extents) - 1
        rows: list[SSAValue] = []
        for n in range(self.width):
            own = {**point, last: _behind(builder, point[last], n)}
            place = [own[dim] for dim in self.order]
            rows.append(load_vector(builder, self._operand, place, self.width))
        argument = self.nest.body.block.args[self.number]
        for n in range(self.width):
            own = {**point, self.inner: _behind(builder, point[self.inner], n)}
            column = [element_of(builder, row, n) for row in rows]
            made = [compute(builder, self.nest, {argument: value})[0] for value in column]
            store_vector(builder, made, self.nest.outputs[0], [own[d] for d in range(last + 1)])

    def _emit_single(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        """Element by element, where buffers begin anywhere."""
        last = len(self.extents) - 1
        own = dict(point)
        inside = builder
        zero, one = (index_constant(builder, n) for n in (0, 1))
        width = index_constant(builder, self.width)
        for dim in (self.inner, last):
            end = scf.YieldOp()
            body = Block([end], arg_types=[IndexType()])
            inside.insert(scf.ForOp(zero, width, one, (), body))
            inside = Builder(InsertPoint.before(end))
            own[dim] = _add(inside, point[dim], body.args[0])
        place = [own[dim] for dim in self.order]
        value = inside.insert(memref.LoadOp.get(self._operand, place)).res
        argument = self.nest.body.block.args[self.number]
        (made,) = compute(inside, self.nest, {argument: value})
        target = [own[dim] for dim in range(last + 1)]
        inside.insert(memref.StoreOp.get(made, self.nest.outputs[0], target))


def _permutation(map: AffineMap) -> tuple[int, ...] | None:
    """The dims that a map lists, if it lists each of them once."""
    dims = [expr.position for expr in map.results if isinstance(expr, AffineDimExpr)]
    whole = len(dims) == len(map.results) and sorted(dims) == list(range(map.num_dims))
    return tuple(dims) if whole else None


def _strides(buffer: SSAValue) -> Sequence[int]:
    strides = cast(MemRefType[Any], buffer.type).get_strides()
    return [int(stride or 0) for stride in strides] if strides is not None else []


def _behind(builder: Builder, index: SSAValue, number: int) -> SSAValue:
    return _add(builder, index, index_constant(builder, number)) if number else index


def _add(builder: Builder, a: SSAValue, b: SSAValue) -> SSAValue:
    return builder.insert(arith.AddiOp(a, b)).result


def _mul(builder: Builder, a: SSAValue, number: int) -> SSAValue:
    return builder.insert(arith.MuliOp(a, index_constant(builder, number))).result
