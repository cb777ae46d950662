"""Nests with sums, maxima and the like over windows: a thread has neighbours that it adds up alone.

Pooling and depthwise convolution, channels last: neighbouring channels are next to each other in
the operands and in the result, so that a thread reads and writes them by accesses of 16 bytes.
Channels first, neighbours are points of a row, whose windows overlap or follow each other: the row
is read from the first window's beginning to the last one's end, and each takes its own elements.
Where windows of several rows overlap, a thread has such a strip of them, and reads each row once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import lcm
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.tensor_loops import apply_map, delinearized, index_constant
from braid.lowering.gpu.aligned_entries import is_aligned
from braid.lowering.gpu.entries import READING_BLOCKS
from braid.lowering.gpu.kernels.lanes import behind
from braid.lowering.gpu.kernels.linear_access import LinearAccess
from braid.lowering.gpu.kernels.thread_nests import (
    ThreadNest,
    global_thread,
    reduction_loops,
)
from braid.lowering.gpu.kernels.wide_access import (
    ACCESS_BYTES,
    compute,
    element_of,
    load_vector,
    store_vector,
)
from braid.lowering.gpu.kernels.window_span import WindowSpan

_LEAST_WIDTH = 2
_MOST_WIDTH = 8
_ENOUGH_THREADS = 2**16
"""So few have more on their way with a row more each than more of them would have."""
_MOST_ROWS = 11
"""Of a thread: with more, what they read in common hardly grows."""
_MOST_SUMS = 56
"""Of a thread: they are in registers."""
_MOST_TERMS = 512
"""That a thread adds up in a straight line."""
_FEW_SUMS = 24
"""With which threads of several blocks have registers for what they read."""


@dataclass(frozen=True)
class Strip:
    """So many rows, along a dim, that a thread computes together: windows along `window` overlap.

    What several of them read is read once.
    """

    dim: int
    window: int
    rows: int


@dataclass(frozen=True)
class WideSums:
    """A nest that reduces, of which a thread computes `width` points that lie next to each other.

    `steps` are, for each operand, the elements from one index of each dim to the next; `spans`, of
    operands by their number, are windows along the dim `taps`.
    """

    own: ThreadNest
    nest: linalg.GenericOp
    steps: tuple[tuple[int, ...], ...]
    width: int
    taps: int | None = None
    spans: Mapping[int, WindowSpan] = field(default_factory=dict[int, WindowSpan])
    strip: Strip | None = None

    @staticmethod
    def of(own: ThreadNest, stored: int | None = None) -> "WideSums | None":
        """The nest with wide accesses; None where there would be none, or several results.

        Where its result is not stored, something else that follows is, `stored` neighbours at once.
        """
        nest = own.nest
        if not own.reduced or not isinstance(nest, linalg.GenericOp) or len(nest.outputs) != 1:
            return None
        if any(isinstance(op, linalg.IndexOp) for op in nest.body.block.ops) or not own.points:
            return None
        found = [LinearAccess.of(v, map) for v, map in zip(nest.operands, own.maps, strict=True)]
        known = [access for access in found if access is not None]
        steps = tuple(access.steps for access in known)
        types = [cast(MemRefType[Any], value.type).element_type for value in nest.operands]
        if len(steps) < len(found) or not own.parallel or i1 in types:
            return None
        plain = WideSums(own, nest, steps, _MOST_WIDTH)
        offsets = [access.offset for access in known]
        ways = [plain, *(replace(plain, taps=dim) for dim in reversed(own.reduced))]
        made = next((made for way in ways if (made := way._fitted(offsets, stored))), None)
        # Where sums begin as what is in memory, that of one row is read.
        begins = own.start is not None or stored is not None
        return made._with_strip() if made is not None and begins else made

    def _fitted(self, offsets: Sequence[int], stored: int | None) -> "WideSums | None":
        """With as many neighbours as all accesses allow; None for one alone."""
        own, lane, output = self.own, self.lane, len(self.nest.inputs)
        used = [n for n in range(output) if self.nest.body.block.args[n].uses]
        spanned = [n for n in used if self.steps[n][lane] != 0 and self._has_taps(n)]
        wide = [n for n in used if n not in spanned and self.steps[n][lane] == 1]
        if stored is None and self.steps[output][lane] != 1:
            return None
        if not spanned and (not wide or self.taps is not None):
            return None
        if any(not self._is_along_last(n) for n in spanned):
            return None
        written = [output] if stored is None else []
        whole = [own.extents[lane], *(offsets[n] for n in (*wide, *written))]
        whole += [step for n in (*wide, *written) for step in self._other_steps(n)]
        least = min(map(self._element_bytes, (*(wide or spanned), *written)))
        width = min(_MOST_WIDTH, ACCESS_BYTES // least)
        width = min(width, stored or width)
        fitting: list[WideSums] = []
        while width >= _LEAST_WIDTH:
            if not any(amount % width for amount in whole):
                spans = {n: self._span(n, offsets[n], width) for n in spanned}
                known = {n: span for n, span in spans.items() if span is not None}
                if len(known) == len(spans):
                    fitting.append(replace(self, width=width, spans=known))
            width //= 2
        return min(fitting, key=lambda one: one._lines, default=None)

    @property
    def _lines(self) -> float:
        """Of caches, that a warp's accesses to spans touch, for each neighbour."""
        return sum(span.lines(self._element_bytes(n)) for n, span in self.spans.items())

    def _with_strip(self) -> "WideSums":
        """With the strip of most rows, the outermost of them, if rows have something in common.

        What threads that are next to each other read in common is in the first cache.
        """
        rows = [dim for dim in self.own.parallel if dim != self.lane]
        windows = [dim for dim in self.own.reduced if dim != self.taps]
        found = [self._strip(dim, window) for dim, window in product(rows, windows)]
        known = [strip for strip in found if strip is not None]
        return replace(self, strip=max(known, key=lambda strip: strip.rows, default=None))

    def _strip(self, dim: int, window: int) -> Strip | None:
        """As many rows as divide the dim, leave enough threads, and are not too much code."""
        extents = self.own.extents
        terms = self.width * extents[window] * (1 if self.taps is None else extents[self.taps])
        most = min(_MOST_ROWS, _MOST_SUMS // self.width, _MOST_TERMS // terms)
        for rows in range(min(extents[dim], most), 1, -1):
            threads = self.own.points // (self.width * rows)
            strip = Strip(dim, window, rows)
            if extents[dim] % rows == 0 and threads >= _ENOUGH_THREADS and self._overlap(strip):
                return strip
        return None

    def _overlap(self, strip: Strip) -> bool:
        """Whether windows of a strip's rows have elements of an operand in common."""
        for number, argument in enumerate(self.nest.body.block.args[:-1]):
            row, tap = (self.steps[number][dim] for dim in (strip.dim, strip.window))
            ends = (row * strip.rows, tap * self.own.extents[strip.window])
            if argument.uses and row > 0 and tap > 0 and lcm(row, tap) < min(ends):
                return True
        return False

    def _has_taps(self, number: int) -> bool:
        return self.taps is not None and self.steps[number][self.taps] != 0

    def _element_bytes(self, number: int) -> int:
        return bytes_of(cast(MemRefType[Any], self.nest.operands[number].type).element_type)

    def _other_steps(self, number: int) -> list[int]:
        """Of the dims with several indices that neither lanes nor taps are along."""
        steps = enumerate(self.steps[number])
        return [
            step
            for dim, step in steps
            if dim not in (self.lane, self.taps) and self.own.extents[dim] > 1
        ]

    def _span(self, number: int, offset: int, width: int) -> WindowSpan | None:
        assert self.taps is not None
        steps = (self.steps[number][self.lane], self.steps[number][self.taps])
        others = [offset, *self._other_steps(number)]
        taps = self.own.extents[self.taps]
        return WindowSpan.of(steps, width, taps, others, self._element_bytes(number))

    def _is_along_last(self, number: int) -> bool:
        """Whether lanes and taps move along the last dim of an operand, whose stride is 1."""
        map, type = self.own.maps[number], cast(MemRefType[Any], self.nest.operands[number].type)
        strides = type.get_strides()
        origin = map.eval([0] * map.num_dims, [])
        moved = [
            map.eval([int(dim == own) for own in range(map.num_dims)], [])
            for dim in (self.lane, self.taps)
        ]
        return (
            strides is not None
            and strides[-1] == 1
            and all(list(place[:-1]) == list(origin[:-1]) for place in moved)
        )

    @property
    def lane(self) -> int:
        """The dim along which neighbours are."""
        return self.own.parallel[-1]

    @property
    def threads(self) -> int:
        """How many threads have work."""
        return self.own.points // (self.width * self._rows)

    @property
    def blocks(self) -> int:
        """Of a multiprocessor, at least, with the registers that a thread needs."""
        if self.width * self._rows > _FEW_SUMS:
            return 1
        arguments = self.nest.body.block.args[:-1]
        vectors = sum(
            bool(argument.uses) and number not in self.spans and steps[self.lane] == 1
            for number, (argument, steps) in enumerate(zip(arguments, self.steps, strict=False))
        )
        return READING_BLOCKS if vectors < 2 else READING_BLOCKS // 2

    @property
    def _rows(self) -> int:
        return 1 if self.strip is None else self.strip.rows

    def point(self, builder: Builder, index: SSAValue) -> dict[int, SSAValue]:
        """The first point of a thread."""
        steps = {self.lane: self.width}
        if self.strip is not None:
            steps[self.strip.dim] = self.strip.rows
        extents = [self.own.extents[dim] // steps.get(dim, 1) for dim in self.own.parallel]
        place = dict(zip(self.own.parallel, delinearized(builder, index, extents), strict=True))
        for dim, step in steps.items():
            by = index_constant(builder, step)
            place[dim] = builder.insert(arith.MuliOp(place[dim], by)).result
        return place

    def rows(self, builder: Builder, point: Mapping[int, SSAValue]) -> list[dict[int, SSAValue]]:
        """The first points of a thread's rows."""
        if self.strip is None:
            return [dict(point)]
        dim = self.strip.dim
        return [{**point, dim: behind(builder, point[dim], n)} for n in range(self._rows)]

    def sums(
        self,
        builder: Builder,
        point: Mapping[int, SSAValue],
        start: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[list[SSAValue]]:
        """The results of each row, of neighbours; `values` are buffers for the nest's."""
        unrolled = {self.taps, *(() if self.strip is None else (self.strip.window,))}
        found = reduction_loops(
            builder,
            {dim: self.own.extents[dim] for dim in self.own.reduced if dim not in unrolled},
            point,
            list(start) * self._rows,
            lambda inside, own, carried: self._elements(inside, own, carried, values),
        )
        return [list(found[n : n + self.width]) for n in range(0, len(found), self.width)]

    def _elements(
        self,
        builder: Builder,
        point: dict[int, SSAValue],
        carried: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[SSAValue]:
        """What is added up at a point of the loops, row by row."""
        reader = _Reader(self, builder, point, values)
        found: list[SSAValue] = []
        for row in range(self._rows):
            lanes = list(carried[row * self.width : (row + 1) * self.width])
            for at in self._unrolled(row):
                lanes = self._element(builder, reader, at, lanes, values)
            found += lanes
        return found

    def _unrolled(self, row: int) -> Iterator[dict[int, int]]:
        """Indices of the dims that are not loops, for a row, in order: from a point on."""
        taps = range(1 if self.taps is None else self.own.extents[self.taps])
        along = range(1 if self.strip is None else self.own.extents[self.strip.window])
        for window, tap in product(along, taps):
            at: dict[int, int] = {}
            if self.strip is not None:
                at |= {self.strip.dim: row, self.strip.window: window}
            if self.taps is not None:
                at[self.taps] = tap
            yield at

    def _element(
        self,
        builder: Builder,
        reader: "_Reader",
        at: Mapping[int, int],
        carried: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[SSAValue]:
        arguments = self.nest.body.block.args
        columns: dict[SSAValue, list[SSAValue]] = {arguments[-1]: list(carried)}
        for number, argument in enumerate(arguments[:-1]):
            if argument.uses:
                columns[argument] = reader.lanes(number, at)
        lanes: list[SSAValue] = []
        for n in range(self.width):
            own = {**values, **{argument: column[n] for argument, column in columns.items()}}
            lanes += compute(builder, self.nest, own)
        return lanes

    def read(
        self, builder: Builder, buffer: SSAValue, number: int, point: Mapping[int, SSAValue]
    ) -> list[SSAValue]:
        """Neighbours of an operand: one that they share, a vector, or one by one."""
        step = self.steps[number][self.lane]
        if step == 1:
            place = self.place(builder, number, point)
            loaded = load_vector(builder, buffer, place, self.width)
            return [element_of(builder, loaded, n) for n in range(self.width)]
        if step == 0:
            place = self.place(builder, number, point)
            return [builder.insert(memref.LoadOp.get(buffer, place)).res] * self.width
        lanes: list[SSAValue] = []
        for n in range(self.width):
            own = {**point, self.lane: behind(builder, point[self.lane], n)}
            place = self.place(builder, number, own)
            lanes.append(builder.insert(memref.LoadOp.get(buffer, place)).res)
        return lanes

    def place(self, builder: Builder, number: int, point: Mapping[int, SSAValue]) -> list[SSAValue]:
        """Indices of an operand's element at a point."""
        known = [point[dim] for dim in range(len(self.own.extents))]
        return [apply_map(builder, expr, known) for expr in self.own.maps[number].results]

    def emit(self, builder: Builder, threads: int) -> None:
        """The code of one thread, of which there are `threads` in a block."""
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
            own, at = each_lane(rest, row, self.lane, self.width)
            self.own.emit_point(own, at)

    def _emit_wide(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        (buffer,) = self.nest.outputs
        rows = self.rows(builder, point)
        if self.own.start is not None:
            start = [self.own.start] * self.width
        else:
            loaded = load_vector(builder, buffer, self._written(builder, point), self.width)
            start = [element_of(builder, loaded, n) for n in range(self.width)]
        for row, sums in zip(rows, self.sums(builder, point, start, {}), strict=True):
            store_vector(builder, sums, buffer, self._written(builder, row))

    def _written(self, builder: Builder, point: Mapping[int, SSAValue]) -> list[SSAValue]:
        zero = index_constant(builder, 0)
        known = {dim: point.get(dim, zero) for dim in range(len(self.own.extents))}
        return self.place(builder, len(self.nest.inputs), known)


class _Reader:
    """What a thread reads at a point of its loops: each element once."""

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
        """Elements of an operand for neighbours, at these indices of unrolled dims."""
        sums = self._sums
        span = sums.spans.get(number)
        if span is None or sums.taps is None:
            return self._read(number, at, None)
        elements = self._read(number, {**at, sums.taps: 0}, span)
        return [elements[span.place(lane, at[sums.taps])] for lane in range(sums.width)]

    def _read(self, number: int, at: Mapping[int, int], span: WindowSpan | None) -> list[SSAValue]:
        sums, builder = self._sums, self._builder
        key = (number, sum(sums.steps[number][dim] * n for dim, n in at.items()))
        if key not in self._found:
            operand = sums.nest.inputs[number]
            buffer = self._values.get(operand, operand)
            point = dict(self._point)
            for dim, n in at.items():
                known = point.get(dim)
                point[dim] = (
                    index_constant(builder, n) if known is None else behind(builder, known, n)
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
    """A loop over the neighbours of a point: where its body is, and the point there."""
    end = scf.YieldOp()
    body = Block([end], arg_types=[IndexType()])
    begin, stop, step = (index_constant(builder, n) for n in (0, width, 1))
    builder.insert(scf.ForOp(begin, stop, step, (), body))
    inside = Builder(InsertPoint.before(end))
    own = inside.insert(arith.AddiOp(point[lane], body.args[0])).result
    return inside, {**point, lane: own}
