"""Parallel nests with accesses of 16 bytes: a thread computes neighbours in the last dim.

Elementwise chains, copies to parts of a concatenation, slices, paddings and gathers: whatever
writes neighbours where neighbours are. A thread has as many points as make 16 bytes of the
narrowest element. Dims that go on where the one behind them ends are one. Operands are read as
vectors where neighbours are aligned, once where neighbours share an element, else one by one. Where
the last dim is no multiple and results are dense, points are counted through all dims instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.tensor_loops import apply_map, delinearized, index_constant
from braid.lowering.gpu.aligned_entries import is_aligned
from braid.lowering.gpu.kernels.lanes import Following, LaneBody, Lanes, wide_lanes
from braid.lowering.gpu.kernels.linear_access import LinearAccess, flat_view, merged_dims
from braid.lowering.gpu.kernels.thread_nests import ThreadNest, global_thread
from braid.lowering.gpu.kernels.wide_access import ACCESS_BYTES, store_vector

_MOST_BYTES = 64
"""Of one operand for a thread: more would cost registers and gain nothing."""


@dataclass(frozen=True)
class WideNest:
    """A nest of which a thread computes `width` points that lie next to each other.

    `dims` are the nest's dims, those that are one together; `accesses` those of its operands in
    these dims, None where one is not linear. With `across`, neighbours go on through all dims.
    """

    nest: linalg.GenericOp
    maps: tuple[AffineMap, ...]
    dims: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    accesses: tuple[LinearAccess | None, ...]
    width: int
    across: bool

    @staticmethod
    def of(own: ThreadNest) -> "WideNest | None":
        """The nest with wide accesses; None where results could not be written so."""
        nest = own.nest
        if own.reduced or not isinstance(nest, linalg.GenericOp) or own.points < 2:
            return None
        first = len(nest.inputs)
        if any(argument.uses for argument in nest.body.block.args[first:]):
            return None
        found = [LinearAccess.of(v, map) for v, map in zip(nest.operands, own.maps, strict=True)]
        known = [access for access in found if access is not None]
        if any(access is None for access in found[first:]):
            return None
        if len(known) < len(found) or _uses_indices(nest):
            dims = tuple((dim,) for dim in range(len(own.extents)))
        else:
            dims = merged_dims(own.extents, known)
        extents = tuple(prod(own.extents[dim] for dim in each) for each in dims)
        accesses = tuple(a.merged(dims) if a is not None else None for a in found)
        plain = WideNest(nest, own.maps, dims, extents, accesses, 1, False)
        along = plain._with_width(False)
        if along.width * plain._narrowest == ACCESS_BYTES:
            return along
        across = plain._with_width(True)
        best = max(along, across, key=lambda one: one.width)
        return best if best.width > 1 else None

    def _with_width(self, across: bool) -> "WideNest":
        """As many neighbours as results allow; 1 if none."""
        outputs = self._results
        last = len(self.extents) - 1
        sizes = [bytes_of(_element(v)) for v in self._used]
        width = min(ACCESS_BYTES // self._narrowest, _MOST_BYTES // max(sizes))
        if across and not all(_is_dense(access, self.extents) for access in outputs):
            width = 1
        while width > 1 and (
            self.points < width
            or any(access.offset % width for access in outputs)
            or (not across and not self._fits(width, last))
        ):
            width //= 2
        return WideNest(self.nest, self.maps, self.dims, self.extents, self.accesses, width, across)

    def _fits(self, width: int, last: int) -> bool:
        """Whether neighbours along the last dim are in whole groups of `width` in all results."""
        whole = len(self.extents) == 1 or self.extents[last] % width == 0
        return whole and all(
            access.width(width, last, self.extents) == width for access in self._results
        )

    @property
    def _results(self) -> list[LinearAccess]:
        return [cast(LinearAccess, a) for a in self.accesses[len(self.nest.inputs) :]]

    @property
    def _used(self) -> list[SSAValue]:
        return [*(value for _, value, _, _ in self._inputs()), *self.nest.outputs]

    @property
    def _narrowest(self) -> int:
        return min(bytes_of(_element(value)) for value in self._used)

    @property
    def points(self) -> int:
        """How many elements each result has."""
        return prod(self.extents)

    @property
    def threads(self) -> int:
        """How many threads have work."""
        return -(-self.points // self.width)

    def emit(self, builder: Builder, threads: int) -> None:
        """The code of one thread, of which there are `threads` in a block."""
        index = global_thread(builder, threads)
        width, points = (index_constant(builder, n) for n in (self.width, self.points))
        start = builder.insert(arith.MuliOp(index, width)).result
        last = index_constant(builder, self.points - self.width)
        fits = builder.insert(arith.CmpiOp(start, last, "ule")).result
        wide = builder.insert(arith.AndIOp(fits, is_aligned(builder))).result
        first, second = scf.YieldOp(), scf.YieldOp()
        builder.insert(scf.IfOp(wide, (), [Block([first])], [Block([second])]))
        self._emit_wide(Builder(InsertPoint.before(first)), start)
        rest = Builder(InsertPoint.before(second))
        end = rest.insert(arith.AddiOp(start, width)).result
        stop = rest.insert(arith.MinUIOp(end, points)).result
        if self.points % self.width == 0:
            # Nothing is left over for buffers that are aligned.
            none = rest.insert(arith.SelectOp(is_aligned(rest), start, stop)).result
            stop = none
        self._emit_single(rest, start, stop)

    def _emit_single(self, builder: Builder, start: SSAValue, stop: SSAValue) -> None:
        end = scf.YieldOp()
        body = Block([end], arg_types=[IndexType()])
        builder.insert(scf.ForOp(start, stop, index_constant(builder, 1), (), body))
        inside = Builder(InsertPoint.before(end))
        point = delinearized(inside, body.args[0], self.extents)
        values: dict[SSAValue, Lanes] = {}
        for argument, operand, map, access in self._inputs():
            place, buffer = self._place(inside, operand, map, access, point)
            values[argument] = inside.insert(memref.LoadOp.get(buffer, place)).res
        found = LaneBody(inside, 1, values, lambda b, dim: point[self._merged(dim)])
        results = found.results(self.nest.body.block)
        for (value,), output, access in zip(results, self.nest.outputs, self._results, strict=True):
            buffer = flat_view(inside, output)
            inside.insert(memref.StoreOp.get(value, buffer, [access.index(inside, point)]))

    def _emit_wide(self, builder: Builder, start: SSAValue) -> None:
        point = delinearized(builder, start, self.extents)
        points = _Points(self, start, point)
        values = {
            argument: self._lanes(builder, operand, map, access, points)
            for argument, operand, map, access in self._inputs()
        }
        body = LaneBody(builder, self.width, values, lambda b, dim: self._index(b, dim, points))
        results = body.results(self.nest.body.block)
        for lanes, output, access in zip(results, self.nest.outputs, self._results, strict=True):
            place = access.index(builder, point)
            store_vector(builder, lanes, flat_view(builder, output), place)

    def _lanes(
        self,
        builder: Builder,
        operand: SSAValue,
        map: AffineMap,
        access: LinearAccess | None,
        points: "_Points",
    ) -> Lanes:
        """Elements of an operand for neighbours."""
        last = len(self.extents) - 1

        def read(point: Sequence[SSAValue]) -> SSAValue:
            place, buffer = self._place(builder, operand, map, access, point)
            return builder.insert(memref.LoadOp.get(buffer, place)).res

        if access is not None:
            piece = 1
            if not self.across:
                piece = access.width(self.width, last, self.extents)
            elif _is_dense(access, self.extents) and access.offset % self.width == 0:
                piece = self.width
            if piece > 1:
                place, buffer = self._place(builder, operand, map, access, points.first)
                return wide_lanes(builder, buffer, place, self.width, piece)
            if not any(access.steps) or (not self.across and access.steps[last] == 0):
                return read(points.first)
        return [read(points.at(builder, n)) for n in range(self.width)]

    def _place(
        self,
        builder: Builder,
        operand: SSAValue,
        map: AffineMap,
        access: LinearAccess | None,
        point: Sequence[SSAValue],
    ) -> tuple[list[SSAValue], SSAValue]:
        """The indices of an element, and the buffer that they are of."""
        if access is None:
            return [apply_map(builder, expr, point) for expr in map.results], operand
        return [access.index(builder, point)], flat_view(builder, operand)

    def _index(self, builder: Builder, dim: int, points: "_Points") -> Lanes:
        """The index of a dim of the nest for neighbours."""
        own = self._merged(dim)
        if self.across:
            return [points.at(builder, n)[own] for n in range(self.width)]
        if own < len(self.extents) - 1:
            return points.first[own]
        return Following(points.first[own], self.width)

    def _merged(self, dim: int) -> int:
        """Which of `dims` a dim of the nest is; those with indices in use are single."""
        return next(number for number, own in enumerate(self.dims) if dim in own)

    def _inputs(self) -> list[tuple[SSAValue, SSAValue, AffineMap, LinearAccess | None]]:
        nest = self.nest
        every = zip(nest.body.block.args, nest.inputs, self.maps, self.accesses, strict=False)
        return [one for one in every if one[0].uses]


class _Points:
    """The points of a thread: the first, and those behind it where they are asked for."""

    def __init__(self, nest: WideNest, start: SSAValue, first: Sequence[SSAValue]) -> None:
        self._nest = nest
        self._start = start
        self.first = first

    def at(self, builder: Builder, number: int) -> Sequence[SSAValue]:
        """The indices of the neighbour of this number."""
        if number == 0:
            return self.first
        by = index_constant(builder, number)
        if self._nest.across:
            own = builder.insert(arith.AddiOp(self._start, by)).result
            return delinearized(builder, own, self._nest.extents)
        *outer, inner = self.first
        return [*outer, builder.insert(arith.AddiOp(inner, by)).result]


def _element(buffer: SSAValue) -> Any:
    return cast(MemRefType[Any], buffer.type).element_type


def _uses_indices(nest: linalg.GenericOp) -> bool:
    return any(isinstance(op, linalg.IndexOp) for op in nest.body.walk())


def _is_dense(access: LinearAccess | None, extents: Sequence[int]) -> bool:
    """Whether neighbours through all dims are neighbours in memory."""
    return access is not None and all(
        step == prod(extents[dim + 1 :])
        for dim, step in enumerate(access.steps)
        if extents[dim] > 1
    )
