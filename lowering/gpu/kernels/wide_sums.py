"""Nests with sums, maxima and the like over windows: a thread has neighbours that it adds up alone.

Pooling and depthwise convolution, channels last: neighbouring channels are next to each other in
the operands and in the result, so that a thread reads and writes them by accesses of 16 bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

_LEAST_WIDTH = 2
_MOST_WIDTH = 8


@dataclass(frozen=True)
class WideSums:
    """A nest that reduces, of which a thread computes `width` points that lie next to each other.

    `steps` are, for each operand, the elements from one index of each dim to the next.
    """

    own: ThreadNest
    nest: linalg.GenericOp
    steps: tuple[tuple[int, ...], ...]
    width: int

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
        lane = own.parallel[-1]
        wide = [number for number, each in enumerate(steps) if each[lane] == 1]
        if stored is not None:
            wide = [number for number in wide if number < len(nest.inputs)]
        if (stored is None and len(nest.inputs) not in wide) or wide[:1] in (
            [],
            [len(nest.inputs)],
        ):
            return None
        whole = [own.extents[lane], *(known[number].offset for number in wide)]
        whole += [
            step
            for number in wide
            for dim, step in enumerate(steps[number])
            if dim != lane and own.extents[dim] > 1
        ]
        width = min(_MOST_WIDTH, ACCESS_BYTES // min(bytes_of(types[n]) for n in wide))
        width = min(width, stored or width)
        while any(amount % width for amount in whole):
            width //= 2
        return WideSums(own, nest, steps, width) if width >= _LEAST_WIDTH else None

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
                {dim: self.own.extents[dim] for dim in self.own.reduced},
                point,
                start,
                lambda inside, own, carried: self._element(inside, own, carried, values),
            )
        )

    def _element(
        self,
        builder: Builder,
        point: dict[int, SSAValue],
        carried: Sequence[SSAValue],
        values: Mapping[SSAValue, SSAValue],
    ) -> list[SSAValue]:
        arguments = self.nest.body.block.args
        columns: dict[SSAValue, list[SSAValue]] = {arguments[-1]: list(carried)}
        for number, (argument, operand) in enumerate(
            zip(arguments, self.nest.inputs, strict=False)
        ):
            if argument.uses:
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
