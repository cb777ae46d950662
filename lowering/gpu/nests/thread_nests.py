"""A loop nest as an entry of a kernel: a thread a point of its parallel dims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.element_types import constant
from braid.lowering.common.loop_nest import Nest, loops_of
from braid.lowering.common.tensor_loops import apply_map, delinearized, index_constant
from braid.lowering.gpu.launch.entries import READING_BLOCKS
from braid.lowering.gpu.nests.wide_access import ACCESS_BYTES

_ENOUGH_THREADS = 2**18
"""The threads that a GPU holds at once."""
_REGISTER_BYTES = 4


@dataclass(frozen=True)
class ThreadNest:
    """A nest whose parallel dims, in the order `parallel`, are spread over threads.

    Threads that are next to each other write elements that are. A nest that reduces starts from
    `start`, or from the previous contents of its results.
    """

    nest: Nest
    extents: tuple[int, ...]
    maps: tuple[AffineMap, ...]
    parallel: tuple[int, ...]
    reduced: tuple[int, ...]
    start: SSAValue | None = None

    @property
    def blocks(self) -> int:
        """Blocks that fit a multiprocessor at least, with the registers that a reducing thread
        needs.

        The assembler unrolls loops by the bytes that they read: each narrow element in flight takes
        a register, so many of them may take all registers.
        """
        types = [cast(MemRefType[Any], operand.type) for operand in self.nest.operands]
        is_narrow = any(bytes_of(type.element_type) < _REGISTER_BYTES for type in types)
        return 1 if is_narrow else READING_BLOCKS

    @staticmethod
    def of(nest: Nest, inner: int | None = None, start: SSAValue | None = None) -> "ThreadNest":
        """Return the nest of static shapes by threads; the last parallel dim is `inner`, if that is
        given.
        """
        loops = loops_of(nest)
        dims = range(len(loops.extents))
        parallel = [dim for dim in dims if loops.is_parallel[dim]]
        written = [e.position for e in loops.result.results if isinstance(e, AffineDimExpr)]
        if sorted(written) == parallel:
            parallel = written
        if inner in parallel:
            parallel = [*(dim for dim in parallel if dim != inner), inner]
        reduced = [dim for dim in dims if not loops.is_parallel[dim]]
        return ThreadNest(nest, loops.extents, loops.maps, tuple(parallel), tuple(reduced), start)

    @property
    def threads(self) -> int:
        """Return the threads that have work: one a point, or fewer where elements are narrow."""
        return -(-self.points // self._each)

    @property
    def _each(self) -> int:
        """Points of a thread, so that it has as many bytes on their way as a wide access.

        One where it reduces, or where threads would be few.
        """
        nest = self.nest
        if self.reduced or not isinstance(nest, linalg.GenericOp) or nest.body.block.args[-1].uses:
            return 1
        if any(op.regions for op in nest.body.block.ops):
            return 1
        used = [v for v, a in zip(nest.operands, nest.body.block.args, strict=True) if a.uses]
        types = [cast(MemRefType[Any], v.type).element_type for v in (*used, *nest.outputs)]
        return groups_of_thread(min(map(bytes_of, types)), self.points)

    @property
    def points(self) -> int:
        """Points of the parallel dims; 0 for a nest without any point."""
        return prod(self.extents[dim] for dim in self.parallel) if all(self.extents) else 0

    def emit(self, builder: Builder, threads: int) -> None:
        """Emit the code of one thread; a block has `threads` of them."""
        each = self._each
        index = global_thread(builder, threads, each)
        points = index_constant(builder, self.points)
        if each == 1:
            self._emit_inside(builder, index, points)
            return
        last = index_constant(builder, self.points - (each - 1) * threads)
        whole = builder.insert(arith.CmpiOp(index, last, "ult")).result
        first, second = scf.YieldOp(), scf.YieldOp()
        builder.insert(scf.IfOp(whole, (), [Block([first])], [Block([second])]))
        self._emit_several(Builder(InsertPoint.before(first)), index, threads)
        rest = Builder(InsertPoint.before(second))
        end = scf.YieldOp()
        body = Block([end], arg_types=[IndexType()])
        step = index_constant(rest, threads)
        stop = rest.insert(arith.AddiOp(index, index_constant(rest, each * threads))).result
        rest.insert(scf.ForOp(index, stop, step, (), body))
        self._emit_inside(Builder(InsertPoint.before(end)), body.args[0], points)

    def _emit_inside(self, builder: Builder, index: SSAValue, points: SSAValue) -> None:
        """Emit the point of this number, if there is one."""
        inside = builder.insert(arith.CmpiOp(index, points, "ult")).result
        end = scf.YieldOp()
        builder.insert(scf.IfOp(inside, (), [Block([end])]))
        body = Builder(InsertPoint.before(end))
        self.emit_point(body, self._point(body, index))

    def _point(self, builder: Builder, index: SSAValue) -> dict[int, SSAValue]:
        extents = [self.extents[dim] for dim in self.parallel]
        return dict(zip(self.parallel, delinearized(builder, index, extents), strict=True))

    def _emit_several(self, builder: Builder, index: SSAValue, threads: int) -> None:
        """Emit points at equal distances: all are read before one is written."""
        nest = self.nest
        assert isinstance(nest, linalg.GenericOp)
        made: list[tuple[list[SSAValue], Sequence[SSAValue]]] = []
        for number in range(self._each):
            by = index_constant(builder, number * threads)
            point = self._point(builder, builder.insert(arith.AddiOp(index, by)).result)
            known = [point[dim] for dim in range(len(self.extents))]
            unread = [_unread(builder, output) for output in nest.outputs]
            made.append((known, self._element(builder, point, unread, {})))
        maps = self.maps[len(nest.inputs) :]
        for known, results in made:
            for result, output, map in zip(results, nest.outputs, maps, strict=True):
                place = _index(builder, map, known)
                builder.insert(memref.StoreOp.get(result, output, place))

    def emit_point(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        """Emit the computation at one point of the parallel dims."""
        nest = self.nest
        if isinstance(nest, linalg.FillOp):
            indices = [point[dim] for dim in range(len(self.extents))]
            builder.insert(memref.StoreOp.get(nest.inputs[0], nest.outputs[0], indices))
            return
        first = len(nest.inputs)
        outputs, maps = nest.outputs, self.maps[first:]
        # The written element does not depend on reduced dims.
        zero = index_constant(builder, 0)
        known = [point.get(dim, zero) for dim in range(len(self.extents))]
        places = [_index(builder, map, known) for map in maps]
        start = [
            self._start(builder, argument, output, place)
            for argument, output, place in zip(
                nest.body.block.args[first:], outputs, places, strict=True
            )
        ]
        results = self.reduce(builder, point, start)
        for result, output, place in zip(results, outputs, places, strict=True):
            builder.insert(memref.StoreOp.get(result, output, place))

    def _start(
        self, builder: Builder, argument: SSAValue, output: SSAValue, place: Sequence[SSAValue]
    ) -> SSAValue:
        if self.start is not None:
            return self.start
        if not self.reduced and not argument.uses:
            return _unread(builder, output)
        return builder.insert(memref.LoadOp.get(output, place)).res

    def reduce(
        self,
        builder: Builder,
        point: dict[int, SSAValue],
        start: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue] | None = None,
    ) -> Sequence[SSAValue]:
        """Return the results at a point, from their initial values; `values` are buffers for the
        nest's.
        """
        buffers = values or {}
        return reduction_loops(
            builder,
            {dim: self.extents[dim] for dim in self.reduced},
            point,
            start,
            lambda inside, own, carried: self._element(inside, own, carried, buffers),
        )

    def _element(
        self,
        builder: Builder,
        point: dict[int, SSAValue],
        carried: Sequence[SSAValue],
        buffers: Mapping[SSAValue, SSAValue],
    ) -> Sequence[SSAValue]:
        nest = self.nest
        assert isinstance(nest, linalg.GenericOp)
        known = [point[dim] for dim in range(len(self.extents))]
        first = len(nest.inputs)
        arguments = nest.body.block.args
        values: dict[SSAValue, SSAValue] = dict(buffers)
        values.update(zip(arguments[first:], carried, strict=True))
        for argument, operand, map in zip(arguments, nest.inputs, self.maps, strict=False):
            if argument.uses:
                buffer = buffers.get(operand, operand)
                load = memref.LoadOp.get(buffer, _index(builder, map, known))
                values[argument] = builder.insert(load).res
        for inner in nest.body.block.ops:
            if isinstance(inner, linalg.IndexOp):
                values[inner.result] = known[inner.dim.value.data]
            elif isinstance(inner, linalg.YieldOp):
                return [values.get(result, result) for result in inner.arguments]
            else:
                builder.insert(inner.clone(values))
        raise AssertionError("a nest yields")


def reduction_loops(
    builder: Builder,
    extents: Mapping[int, int],
    point: Mapping[int, SSAValue],
    carried: Sequence[SSAValue],
    element: Callable[[Builder, dict[int, SSAValue], Sequence[SSAValue]], Sequence[SSAValue]],
) -> Sequence[SSAValue]:
    """Emit loops over dims of these extents, the first outermost, that carry values through
    `element`.

    `element` gets the point with the indices of these dims, and the carried values.
    """
    if not extents:
        return element(builder, dict(point), carried)
    (dim, extent), *rest = extents.items()
    start, stop, step = (index_constant(builder, n) for n in (0, extent, 1))
    block = Block(arg_types=[IndexType(), *(value.type for value in carried)])
    inside = Builder(InsertPoint.at_end(block))
    own = {**point, dim: block.args[0]}
    inner = reduction_loops(inside, dict(rest), own, block.args[1:], element)
    inside.insert(scf.YieldOp(*inner))
    return builder.insert(scf.ForOp(start, stop, step, carried, block)).results


def groups_of_thread(size: int, groups: int, bytes: int = ACCESS_BYTES) -> int:
    """Return how many of this many accesses, of `size` bytes, a thread has on their way at once:
    `bytes`.
    """
    each = max(1, bytes // size)
    while each > 1 and groups < each * _ENOUGH_THREADS:
        each //= 2
    return each


def global_thread(builder: Builder, threads: int, each: int = 1) -> SSAValue:
    """Return the number of the calling thread in the whole grid, whose blocks have `threads`.

    With `each`, the value of its first point, if blocks have this many times more of them.
    """
    block = _dimension(builder, gpu.BlockIdOp)
    size = index_constant(builder, each * threads)
    first = builder.insert(arith.MuliOp(block, size)).result
    return builder.insert(arith.AddiOp(first, _dimension(builder, gpu.ThreadIdOp))).result


def _dimension(builder: Builder, op: type[gpu.BlockIdOp] | type[gpu.ThreadIdOp]) -> SSAValue:
    made: Operation = builder.insert(op(gpu.DimensionAttr(gpu.DimensionEnum.X)))
    return made.results[0]


def _index(builder: Builder, map: AffineMap, point: Sequence[SSAValue]) -> list[SSAValue]:
    return [
        point[expr.position] if isinstance(expr, AffineDimExpr) else apply_map(builder, expr, point)
        for expr in map.results
    ]


def _unread(builder: Builder, output: SSAValue) -> SSAValue:
    """Return a stand-in for the element of an output that the nest does not read."""
    type = cast(MemRefType[Any], output.type).element_type
    if isinstance(type, IndexType):
        return index_constant(builder, 0)
    return constant(builder, 0, type)
