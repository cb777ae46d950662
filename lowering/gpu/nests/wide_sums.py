"""Nests with sums, maxima and the like over windows: a thread has neighbours that it adds up alone.

Pooling and depthwise convolution, channels last: neighbouring channels are next to each other in
the operands and in the result, so that a thread reads and writes them by accesses of 16 bytes.
Channels first, neighbours are points of a row, whose windows overlap or follow each other: the row
is read from the first window's beginning to the last one's end, and each takes its own elements.
If windows of several rows overlap, a thread has a strip of rows, and reads each input row once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.common.tensor_loops import apply_map, delinearized, index_constant
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.launch.entries import keep_rolled
from braid.lowering.gpu.nests.lanes import index_plus
from braid.lowering.gpu.nests.sum_tile import SumTile
from braid.lowering.gpu.nests.thread_nests import ThreadNest, global_thread, reduction_loops
from braid.lowering.gpu.nests.wide_access import (
    compute,
    element_of,
    load_vector,
    store_vector,
)
from braid.lowering.gpu.nests.window_span import WindowSpan


@dataclass(frozen=True)
class WideSums:
    """The code of a nest that reduces; each thread computes a tile."""

    tile: SumTile

    @staticmethod
    def of(own: ThreadNest, stored: int | None = None) -> "WideSums | None":
        """See `SumTile.of`."""
        tile = SumTile.of(own, stored)
        return None if tile is None else WideSums(tile)

    @property
    def threads(self) -> int:
        """Return the number of threads that have work."""
        return self.tile.threads

    @property
    def blocks(self) -> int:
        """Blocks that fit a multiprocessor at least, with the registers that a thread needs."""
        return self.tile.blocks

    def point(self, builder: Builder, index: SSAValue) -> dict[int, SSAValue]:
        """Return the first point of a thread."""
        tile = self.tile
        steps = {tile.lane: tile.width}
        if tile.strip is not None:
            steps[tile.strip.dim] = tile.strip.rows
        dims = tile.own.parallel
        extents = [tile.own.extents[dim] // steps.get(dim, 1) for dim in dims]
        place = dict(zip(dims, delinearized(builder, index, extents), strict=True))
        for dim, step in steps.items():
            by = index_constant(builder, step)
            place[dim] = builder.insert(arith.MuliOp(place[dim], by)).result
        return place

    def rows(self, builder: Builder, point: Mapping[int, SSAValue]) -> list[dict[int, SSAValue]]:
        """Return the first points of a thread's rows."""
        if self.tile.strip is None:
            return [dict(point)]
        dim = self.tile.strip.dim
        return [{**point, dim: index_plus(builder, point[dim], n)} for n in range(self.tile.rows)]

    def sums(
        self,
        builder: Builder,
        point: Mapping[int, SSAValue],
        start: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[list[SSAValue]]:
        """Return the results of each row, of neighbours; `values` are buffers for the nest's."""
        tile = self.tile
        unrolled = {tile.taps, *(() if tile.strip is None else (tile.strip.window,))}
        found = reduction_loops(
            builder,
            {dim: tile.own.extents[dim] for dim in tile.own.reduced if dim not in unrolled},
            point,
            list(start) * tile.rows,
            lambda inside, own, carried: self._elements(inside, own, carried, values),
        )
        return [list(found[n : n + tile.width]) for n in range(0, len(found), tile.width)]

    def _elements(
        self,
        builder: Builder,
        point: dict[int, SSAValue],
        carried: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[SSAValue]:
        """Return the addend at a point of the loops, row by row."""
        reader = _Reader(self, builder, point, values)
        found: list[SSAValue] = []
        for row in range(self.tile.rows):
            lanes = list(carried[row * self.tile.width : (row + 1) * self.tile.width])
            for at in self.tile.unrolled(row):
                lanes = self._element(builder, reader, at, lanes, values)
            found += lanes
        return found

    def _element(
        self,
        builder: Builder,
        reader: "_Reader",
        at: Mapping[int, int],
        carried: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[SSAValue]:
        arguments = self.tile.nest.body.block.args
        columns: dict[SSAValue, list[SSAValue]] = {arguments[-1]: list(carried)}
        for number, argument in enumerate(arguments[:-1]):
            if argument.uses:
                columns[argument] = reader.lanes(number, at)
        lanes: list[SSAValue] = []
        for n in range(self.tile.width):
            own = {**values, **{argument: column[n] for argument, column in columns.items()}}
            lanes += compute(builder, self.tile.nest.body.block, own)
        return lanes

    def read(
        self, builder: Builder, buffer: SSAValue, number: int, point: Mapping[int, SSAValue]
    ) -> list[SSAValue]:
        """Return the neighbours of an operand: one that they share, a vector, or one by one."""
        step = self.tile.steps[number][self.tile.lane]
        if step == 1:
            place = self.place(builder, number, point)
            loaded = load_vector(builder, buffer, place, self.tile.width)
            return [element_of(builder, loaded, n) for n in range(self.tile.width)]
        if step == 0:
            place = self.place(builder, number, point)
            return [builder.insert(memref.LoadOp.get(buffer, place)).res] * self.tile.width
        lanes: list[SSAValue] = []
        for n in range(self.tile.width):
            own = {**point, self.tile.lane: index_plus(builder, point[self.tile.lane], n)}
            place = self.place(builder, number, own)
            lanes.append(builder.insert(memref.LoadOp.get(buffer, place)).res)
        return lanes

    def place(self, builder: Builder, number: int, point: Mapping[int, SSAValue]) -> list[SSAValue]:
        """Return indices of an operand's element at a point."""
        known = [point[dim] for dim in range(len(self.tile.own.extents))]
        return [apply_map(builder, expr, known) for expr in self.tile.own.maps[number].results]

    def emit(self, builder: Builder, threads: int) -> None:
        """Emit the code of one thread; a block has `threads` of them."""
        index = global_thread(builder, threads)
        limit = index_constant(builder, self.threads)
        inside = builder.insert(arith.CmpiOp(index, limit, "ult")).result
        end = scf.YieldOp()
        builder.insert(scf.IfOp(inside, (), [Block([end])]))
        builder = Builder(InsertPoint.before(end))
        point = self.point(builder, index)
        first, second = scf.YieldOp(), scf.YieldOp()
        aligned = is_aligned(builder)
        builder.insert(scf.IfOp(aligned, (), [Block([first])], [Block([second])]))
        self._emit_wide(Builder(InsertPoint.before(first)), point)
        for row in self.rows(rest := Builder(InsertPoint.before(second)), point):
            own, at = each_lane(rest, row, self.tile.lane, self.tile.width)
            self.tile.own.emit_point(own, at)

    def _emit_wide(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        (buffer,) = self.tile.nest.outputs
        rows = self.rows(builder, point)
        if self.tile.own.start is not None:
            start = [self.tile.own.start] * self.tile.width
        else:
            loaded = load_vector(builder, buffer, self._written(builder, point), self.tile.width)
            start = [element_of(builder, loaded, n) for n in range(self.tile.width)]
        for row, sums in zip(rows, self.sums(builder, point, start, {}), strict=True):
            store_vector(builder, sums, buffer, self._written(builder, row))

    def _written(self, builder: Builder, point: Mapping[int, SSAValue]) -> list[SSAValue]:
        zero = index_constant(builder, 0)
        known = {dim: point.get(dim, zero) for dim in range(len(self.tile.own.extents))}
        return self.place(builder, len(self.tile.nest.inputs), known)


class _Reader:
    """The reader of a thread's operands at a point of its loops, which reads each element once."""

    def __init__(
        self,
        sums: WideSums,
        builder: Builder,
        point: Mapping[int, SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> None:
        self._sums = sums
        self._builder = builder
        self._point = point
        self._values = values
        self._found: dict[tuple[int, int], list[SSAValue]] = {}

    def lanes(self, number: int, at: Mapping[int, int]) -> list[SSAValue]:
        """Return the elements of an operand for neighbours, at these indices of unrolled dims."""
        tile = self._sums.tile
        span = tile.spans.get(number)
        if span is None or tile.taps is None:
            return self._read(number, at, None)
        elements = self._read(number, {**at, tile.taps: 0}, span)
        return [elements[span.place(lane, at[tile.taps])] for lane in range(tile.width)]

    def _read(self, number: int, at: Mapping[int, int], span: WindowSpan | None) -> list[SSAValue]:
        sums, builder = self._sums, self._builder
        key = (number, sum(sums.tile.steps[number][dim] * n for dim, n in at.items()))
        if key not in self._found:
            operand = sums.tile.nest.inputs[number]
            buffer = self._values.get(operand, operand)
            point = dict(self._point)
            for dim, n in at.items():
                known = point.get(dim)
                point[dim] = (
                    index_constant(builder, n) if known is None else index_plus(builder, known, n)
                )
            if span is None:
                self._found[key] = sums.read(builder, buffer, number, point)
            else:
                place = sums.place(builder, number, point)
                self._found[key] = _read_span(builder, buffer, place, span)
        return self._found[key]


def _read_span(
    builder: Builder, buffer: SSAValue, place: Sequence[SSAValue], span: WindowSpan
) -> list[SSAValue]:
    *outer, inner = place
    elements: list[SSAValue] = []
    for start, size in span.pieces():
        at = builder.insert(arith.AddiOp(inner, index_constant(builder, start))).result
        if size == 1:
            elements.append(builder.insert(memref.LoadOp.get(buffer, [*outer, at])).res)
            continue
        loaded = load_vector(builder, buffer, [*outer, at], size)
        elements += [element_of(builder, loaded, n) for n in range(size)]
    return elements


def each_lane(
    builder: Builder, point: Mapping[int, SSAValue], lane: int, width: int
) -> tuple[Builder, dict[int, SSAValue]]:
    """Return a loop over the neighbours of a point: where its body is, and the point there.

    It stays a loop: if unrolled, it would read the addends of all neighbours at once.
    """
    end = scf.YieldOp()
    body = Block([end], arg_types=[IndexType()])
    begin, stop, step = (index_constant(builder, n) for n in (0, width, 1))
    loop = scf.ForOp(begin, stop, step, (), body)
    keep_rolled(builder.insert(loop))
    inside = Builder(InsertPoint.before(end))
    own = inside.insert(arith.AddiOp(point[lane], body.args[0])).result
    return inside, {**point, lane: own}
