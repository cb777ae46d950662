"""Parallel nests with accesses of 16 bytes: a thread computes neighbours in the last dims.

Elementwise chains, copies to parts of a concatenation, slices, paddings and gathers: whatever
writes neighbours where neighbours are. A thread has as many points as fill 16 bytes of the
narrowest element: the threads of a warp write one piece of memory, even if they share reads. Dims
that go on where the one after them ends are one. Operands are read as vectors where what neighbours
need is aligned, and each element once. Results that are the same along a short dim, such as the
rows of an enlarged image, are computed once. Where the last dims are no multiple and results are
dense, points are counted through all dims instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
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
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.nests.lane_box import LaneBox
from braid.lowering.gpu.nests.lanes import (
    Following,
    LaneBody,
    Lanes,
    index_plus,
    scattered_lanes,
    wide_lanes,
)
from braid.lowering.gpu.nests.linear_access import (
    LinearAccess,
    flat_view,
    memory_size,
    merged_dims,
)
from braid.lowering.gpu.nests.thread_nests import (
    ThreadNest,
    global_thread,
    groups_of_thread,
)
from braid.lowering.gpu.nests.wide_access import ACCESS_BYTES, store_vector

_MOST_BYTES = 64
"""The most bytes of one operand for a thread: more would cost registers and gain nothing."""

_MOST_COPIES = 4
"""The most copies of a result for a thread: more would leave too few threads."""


@dataclass(frozen=True)
class WideNest:
    """A nest of which a thread computes `width` points that lie next to each other.

    `dims` are the nest's dims after merging; `accesses` are its operands' accesses
    in these dims, None for one that is not linear. Results are the same along the dims `copied`, of
    which the extent here is 1. With `across`, neighbours go on through all dims, else they are
    `box`.
    """

    nest: linalg.GenericOp
    maps: tuple[AffineMap, ...]
    dims: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    accesses: tuple[LinearAccess | None, ...]
    width: int
    across: bool
    copied: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(own: ThreadNest) -> "WideNest | None":
        """Return the nest with wide accesses; None where results could not be written so."""
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
            dims = tuple((dim,) for dim in own.parallel)
        else:
            in_order = [access.merged([(dim,) for dim in own.parallel]) for access in known]
            merged = merged_dims([own.extents[dim] for dim in own.parallel], in_order)
            dims = tuple(tuple(own.parallel[number] for number in each) for each in merged)
        extents = tuple(prod(own.extents[dim] for dim in each) for each in dims)
        accesses = tuple(a.merged(dims) if a is not None else None for a in found)
        plain = WideNest(nest, own.maps, dims, extents, accesses, 1, False)
        along = plain._with_copies()._with_width(False)
        if along.width * plain._narrowest >= ACCESS_BYTES:
            return along
        across = plain._with_width(True)
        best = along if across._reads_single and along.width > 1 else across
        best = max(along, best, key=lambda one: one.width)
        return best if best.width > 1 else None

    @property
    def _reads_single(self) -> bool:
        """Return whether the reads of neighbours are located one by one through all dims."""
        read = [access for _, _, _, access in self._inputs()]
        return not all(a is not None and (self._is_whole(a) or not any(a.steps)) for a in read)

    def _with_copies(self) -> "WideNest":
        """Return the nest in which each thread takes short dims along which no operand differs."""
        used = [access for _, _, _, access in self._inputs()]
        extents, copied = list(self.extents), list[tuple[int, int]]()
        if not used or None in used or _uses_indices(self.nest):
            return self
        for dim, extent in enumerate(self.extents[:-1]):
            same = all(access is not None and access.steps[dim] == 0 for access in used)
            count = prod(own for _, own in copied) * extent
            if same and extent > 1 and count <= _MOST_COPIES:
                copied.append((dim, extent))
                extents[dim] = 1
        return replace(self, extents=tuple(extents), copied=tuple(copied))

    def _with_width(self, across: bool) -> "WideNest":
        """Return the nest with as many neighbours as results allow; 1 if none."""
        outputs = self._results
        width = min(ACCESS_BYTES // self._narrowest, self._most)
        if across and not all(_is_dense(access, self.extents) for access in outputs):
            width = 1
        while width > 1 and (
            self.points < width
            or (
                any(access.offset % width for access in outputs)
                if across
                else not self._fits(width)
            )
        ):
            width //= 2
        return replace(self, width=width, across=across)

    def _fits(self, width: int) -> bool:
        """Return whether neighbours are in whole groups of `width` in all results."""
        box = LaneBox.of(self.extents, width)
        if box is None and len(self.extents) == 1:
            box = LaneBox((self.points,), (width,))
        return box is not None and all(map(box.is_dense, self._results))

    @property
    def box(self) -> LaneBox:
        """The points of a thread, without those of `copied`."""
        box = LaneBox.of(self.extents, self.width)
        return LaneBox((self.points,), (self.width,)) if box is None else box

    @property
    def _most(self) -> int:
        return _MOST_BYTES // max(bytes_of(_element(value)) for value in self._used)

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
        """Return the number of elements of each result, but for copies."""
        return prod(self.extents)

    @property
    def threads(self) -> int:
        """Return the number of threads that have work."""
        return -(-self.points // (self.width * self._each))

    @property
    def _each(self) -> int:
        """Groups of neighbours of a thread, a block's threads apart, where they are narrow.

        Two wide ones of an operand of up to 16 bits that is alone, unless the writes have gaps:
        an H200 then takes 3 % more time instead of 4 % less.
        """
        groups = -(-self.points // self.width)
        dense = all(_is_dense(access, self.extents) for access in self._results)
        alone = len(self._inputs()) == 1 and self._narrowest < 4 and (dense or self.copied)
        bytes = 2 * ACCESS_BYTES if alone else ACCESS_BYTES
        return groups_of_thread(self.width * self._narrowest, groups, bytes)

    def emit(self, builder: Builder, threads: int) -> None:
        """Emit the code of one thread; a block has `threads` of them."""
        each = self._each
        index = global_thread(builder, threads, each)
        width = index_constant(builder, self.width)
        start = builder.insert(arith.MuliOp(index, width)).result
        span = self.width * ((each - 1) * threads + 1)
        last = index_constant(builder, self.points - span)
        fits = builder.insert(arith.CmpiOp(start, last, "ule")).result
        wide = builder.insert(arith.AndIOp(fits, is_aligned(builder))).result
        first, second = scf.YieldOp(), scf.YieldOp()
        builder.insert(scf.IfOp(wide, (), [Block([first])], [Block([second])]))
        self._emit_wide(Builder(InsertPoint.before(first)), start, self.width * threads)
        rest = Builder(InsertPoint.before(second))
        if each == 1:
            self._emit_rest(rest, start)
            return
        end = scf.YieldOp()
        body = Block([end], arg_types=[IndexType()])
        stop = rest.insert(arith.AddiOp(start, index_constant(rest, span))).result
        step = index_constant(rest, self.width * threads)
        rest.insert(scf.ForOp(start, stop, step, (), body))
        self._emit_rest(Builder(InsertPoint.before(end)), body.args[0])

    def _emit_rest(self, rest: Builder, start: SSAValue) -> None:
        """Emit the rest of a group of neighbours, one by one."""
        width, points = (index_constant(rest, n) for n in (self.width, self.points))
        end = rest.insert(arith.AddiOp(start, width)).result
        stop = rest.insert(arith.MinUIOp(end, points)).result
        if self.points % self.width == 0 and self._each == 1:
            # No points remain for aligned buffers.
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
            for place in self._places(inside, access, point):
                inside.insert(memref.StoreOp.get(value, buffer, [place]))

    def _emit_wide(self, builder: Builder, start: SSAValue, apart: int) -> None:
        """Emit groups of neighbours `apart` points apart: all are read before one is written."""
        groups: list[tuple[_Points, dict[SSAValue, Lanes]]] = []
        for number in range(self._each):
            own = index_plus(builder, start, number * apart)
            points = _Points(self, own, delinearized(builder, own, self.extents))
            values = {
                argument: self._lanes(builder, operand, map, access, points)
                for argument, operand, map, access in self._inputs()
            }
            groups.append((points, values))
        for points, values in groups:
            self._write_wide(builder, points, values)

    def _write_wide(
        self, builder: Builder, points: "_Points", values: dict[SSAValue, Lanes]
    ) -> None:
        body = LaneBody(builder, self.width, values, lambda b, dim: self._index(b, dim, points))
        results = body.results(self.nest.body.block)
        for lanes, output, access in zip(results, self.nest.outputs, self._results, strict=True):
            buffer = flat_view(builder, output)
            for place in self._places(builder, access, points.first):
                store_vector(builder, lanes, buffer, place)

    def _places(
        self, builder: Builder, access: LinearAccess, point: Sequence[SSAValue]
    ) -> Iterator[SSAValue]:
        """Yield where a result is written: as often as it is copied."""
        place = access.index(builder, point)
        for numbers in product(*(range(extent) for _, extent in self.copied)):
            yield index_plus(
                builder,
                place,
                sum(
                    access.steps[dim] * number
                    for number, (dim, _) in zip(numbers, self.copied, strict=True)
                ),
            )

    def _lanes(
        self,
        builder: Builder,
        operand: SSAValue,
        map: AffineMap,
        access: LinearAccess | None,
        points: "_Points",
    ) -> Lanes:
        """Return the elements of an operand for neighbours."""
        if access is not None and not self.across:
            offsets = self.box.offsets(access)
            if not any(offsets):
                place, buffer = self._place(builder, operand, map, access, points.first)
                return builder.insert(memref.LoadOp.get(buffer, place)).res
            most = min(self.width, ACCESS_BYTES // bytes_of(_element(operand)))
            piece = self.box.piece(access, most, memory_size(operand))
            place, buffer = self._place(builder, operand, map, access, points.first)
            return scattered_lanes(builder, buffer, place, offsets, piece)
        if access is not None and self._is_whole(access):
            place, buffer = self._place(builder, operand, map, access, points.first)
            return wide_lanes(builder, buffer, place, self.width, self.width)

        def read(point: Sequence[SSAValue]) -> SSAValue:
            place, buffer = self._place(builder, operand, map, access, point)
            return builder.insert(memref.LoadOp.get(buffer, place)).res

        if access is not None and not any(access.steps):
            return read(points.first)
        return [read(points.at(builder, n)) for n in range(self.width)]

    def _is_whole(self, access: LinearAccess) -> bool:
        """Return whether neighbours through all dims are, and each group is aligned."""
        return _is_dense(access, self.extents) and access.offset % self.width == 0

    def _place(
        self,
        builder: Builder,
        operand: SSAValue,
        map: AffineMap,
        access: LinearAccess | None,
        point: Sequence[SSAValue],
    ) -> tuple[list[SSAValue], SSAValue]:
        """Return the indices of an element, and the buffer that they are of."""
        if access is None:
            own = [point[self._merged(dim)] for dim in range(len(self.extents))]
            return [apply_map(builder, expr, own) for expr in map.results], operand
        return [access.index(builder, point)], flat_view(builder, operand)

    def _index(self, builder: Builder, dim: int, points: "_Points") -> Lanes:
        """Return the index of a dim of the nest for neighbours."""
        own = self._merged(dim)
        if self.across:
            return [points.at(builder, n)[own] for n in range(self.width)]
        if self.box.counts[own] == 1:
            return points.first[own]
        if own == len(self.extents) - 1 and self.box.counts[own] == self.width:
            return Following(points.first[own], self.width)
        return [points.at(builder, n)[own] for n in range(self.width)]

    def _merged(self, dim: int) -> int:
        """Return which of `dims` a dim of the nest is; those with indices in use are single."""
        return next(number for number, own in enumerate(self.dims) if dim in own)

    def _inputs(self) -> list[tuple[SSAValue, SSAValue, AffineMap, LinearAccess | None]]:
        nest = self.nest
        every = zip(nest.body.block.args, nest.inputs, self.maps, self.accesses, strict=False)
        return [one for one in every if one[0].uses]


class _Points:
    """The points of a thread: the first, and the following ones on request."""

    def __init__(self, nest: WideNest, start: SSAValue, first: Sequence[SSAValue]) -> None:
        self._nest = nest
        self._start = start
        self.first = first

    def at(self, builder: Builder, number: int) -> Sequence[SSAValue]:
        """Return the indices of the neighbour of this number."""
        if number == 0:
            return self.first
        if self._nest.across:
            by = index_constant(builder, number)
            own = builder.insert(arith.AddiOp(self._start, by)).result
            return delinearized(builder, own, self._nest.extents)
        lane = self._nest.box.lane(number)
        return [index_plus(builder, own, n) for own, n in zip(self.first, lane, strict=True)]


def _element(buffer: SSAValue) -> Any:
    return cast(MemRefType[Any], buffer.type).element_type


def _uses_indices(nest: linalg.GenericOp) -> bool:
    return any(isinstance(op, linalg.IndexOp) for op in nest.body.walk())


def _is_dense(access: LinearAccess | None, extents: Sequence[int]) -> bool:
    """Return whether neighbours through all dims are neighbours in memory."""
    return access is not None and all(
        step == prod(extents[dim + 1 :])
        for dim, step in enumerate(access.steps)
        if extents[dim] > 1
    )
