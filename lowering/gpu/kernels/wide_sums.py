"""Nests with sums, maxima and the like over windows: a thread has neighbours that it adds up alone.

Pooling and depthwise convolution, channels last: neighbouring channels are next to each other in
the operands and in the result, so that a thread reads and writes them by accesses of 16 bytes.
Channels first, neighbours are points of a row, whose windows overlap or follow each other: the row
is read from the first window's beginning to the last one's end, and each takes its own elements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from braid.lowering.gpu.kernels.linear_access import LinearAccess
from braid.lowering.gpu.kernels.thread_nests import ThreadNest, global_thread, reduction_loops
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
        return next((made for way in ways if (made := way._fitted(offsets, stored))), None)

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
        while width >= _LEAST_WIDTH:
            if not any(amount % width for amount in whole):
                spans = {n: self._span(n, offsets[n], width) for n in spanned}
                known = {n: span for n, span in spans.items() if span is not None}
                if len(known) == len(spans):
                    return replace(self, width=width, spans=known)
            width //= 2
        return None

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
        return self.own.points // self.width

    def point(self, builder: Builder, index: SSAValue) -> dict[int, SSAValue]:
        """The first point of a thread."""
        extents = [self.own.extents[dim] for dim in self.own.parallel]
        extents[-1] //= self.width
        place = delinearized(builder, index, extents)
        width = index_constant(builder, self.width)
        place[-1] = builder.insert(arith.MuliOp(place[-1], width)).result
        return dict(zip(self.own.parallel, place, strict=True))

    def sums(
        self,
        builder: Builder,
        point: Mapping[int, SSAValue],
        start: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[SSAValue]:
        """The results at a point and its neighbours; `values` are buffers for the nest's."""
        return list(
            reduction_loops(
                builder,
                {dim: self.own.extents[dim] for dim in self.own.reduced if dim != self.taps},
                point,
                start,
                lambda inside, own, carried: self._elements(inside, own, carried, values),
            )
        )

    def _elements(
        self,
        builder: Builder,
        point: dict[int, SSAValue],
        carried: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[SSAValue]:
        """What is added up at a point of the loops: one element, or all taps."""
        if self.taps is None:
            return self._element(builder, point, carried, values, {})
        first = {**point, self.taps: index_constant(builder, 0)}
        lanes = list(carried)
        rows: dict[int, list[SSAValue]] = {}
        for number, span in self.spans.items():
            operand = self.nest.inputs[number]
            place = self._place(builder, number, first)
            rows[number] = _read_span(builder, values.get(operand, operand), place, span)
        for tap in range(self.own.extents[self.taps]):
            taken = {
                number: [rows[number][span.place(lane, tap)] for lane in range(self.width)]
                for number, span in self.spans.items()
            }
            at = {**point, self.taps: index_constant(builder, tap)}
            lanes = self._element(builder, at, lanes, values, taken)
        return lanes

    def _element(
        self,
        builder: Builder,
        point: dict[int, SSAValue],
        carried: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
        taken: Mapping[int, list[SSAValue]],
    ) -> list[SSAValue]:
        """With what has been `taken` from spans, by the number of the operand."""
        arguments = self.nest.body.block.args
        columns: dict[SSAValue, list[SSAValue]] = {arguments[-1]: list(carried)}
        for number, (argument, operand) in enumerate(
            zip(arguments, self.nest.inputs, strict=False)
        ):
            if number in taken:
                columns[argument] = taken[number]
            elif argument.uses:
                buffer = values.get(operand, operand)
                columns[argument] = self._read(builder, buffer, number, point)
        lanes: list[SSAValue] = []
        for n in range(self.width):
            own = {**values, **{argument: column[n] for argument, column in columns.items()}}
            lanes += compute(builder, self.nest, own)
        return lanes

    def _read(
        self, builder: Builder, buffer: SSAValue, number: int, point: dict[int, SSAValue]
    ) -> list[SSAValue]:
        """Neighbours of an operand: one that they share, a vector, or one by one."""
        step = self.steps[number][self.lane]
        if step == 1:
            place = self._place(builder, number, point)
            loaded = load_vector(builder, buffer, place, self.width)
            return [element_of(builder, loaded, n) for n in range(self.width)]
        if step == 0:
            place = self._place(builder, number, point)
            return [builder.insert(memref.LoadOp.get(buffer, place)).res] * self.width
        lanes: list[SSAValue] = []
        for n in range(self.width):
            behind = builder.insert(arith.AddiOp(point[self.lane], index_constant(builder, n)))
            place = self._place(builder, number, {**point, self.lane: behind.result})
            lanes.append(builder.insert(memref.LoadOp.get(buffer, place)).res)
        return lanes

    def _place(
        self, builder: Builder, number: int, point: Mapping[int, SSAValue]
    ) -> list[SSAValue]:
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
        own, at = each_lane(Builder(InsertPoint.before(second)), point, self.lane, self.width)
        self.own.emit_point(own, at)

    def _emit_wide(self, builder: Builder, point: dict[int, SSAValue]) -> None:
        zero = index_constant(builder, 0)
        known = {dim: point.get(dim, zero) for dim in range(len(self.own.extents))}
        output = len(self.nest.inputs)
        place = self._place(builder, output, known)
        (buffer,) = self.nest.outputs
        if self.own.start is not None:
            start = [self.own.start] * self.width
        else:
            loaded = load_vector(builder, buffer, place, self.width)
            start = [element_of(builder, loaded, n) for n in range(self.width)]
        sums = self.sums(builder, point, start, {})
        store_vector(builder, sums, buffer, place)


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
