"""Scatters: the data, unless the result lies over it, then one slice of updates after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.ir import BlockArgument

from braid.analysis.nests.dims import row_major_strides
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_number, is_unsigned
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterOp
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.elementwise_table import Emit, emitter_of
from braid.lowering.emit.positions import position_of
from braid.lowering.emit.rows import each
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import InPlace, Kernel
from braid.targets.kernels.schedules import Schedule


@dataclass(frozen=True)
class ScatterFamily(VectorFamily):
    """A scatter of numbers alone in its group, row-major.

    Several updates may address one element, so that they are in one grid iteration.
    """

    name: str = "scatter"
    version: int = 3
    anchors: ClassVar = (ScatterOp,)

    def match(self, group: FusedOp) -> "_Scatter | None":
        """One scatter that is not empty, of operands that are the group's."""
        op = group.body.block.first_op
        if not isinstance(op, ScatterOp) or op.next_op is not group.terminator:
            return None
        values = (*op.operands, op.output)
        if any(DYNAMIC in shape_of(v) or 0 in shape_of(v) for v in values):
            return None
        if boxes_of(group) or overlap_of(group) is not None or len(group.results) != 1:
            return None
        type = element_type_of(op.output)
        combine = emitter_of(op.reduction.data, [type, type], type)
        if not is_number(type) or (combine is None and op.reduction.data != "none"):
            return None
        return _Scatter(group, self.unit, op, combine)


@dataclass(frozen=True, eq=False)
class _Scatter(VectorCandidate):
    op: ScatterOp
    combine: Emit | None

    def choices(self) -> Sequence[LayoutChoice]:
        """Row-major."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Memory traffic, as if the data were copied."""
        return self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """All in one iteration."""

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            data, indices, updates = (buffers[number] for number in self._numbers)
            _copy_elsewhere(e, data, buffers[-1], prod(shape_of(self.op.data)))
            self._update(e, indices, updates, buffers[-1])

        return grid_kernel(self.group, symbol, self.unit, 1, iteration, self._in_place)

    @property
    def _numbers(self) -> list[int]:
        """Of data, indices and updates among the operands of the group."""
        arguments = [value for value in self.op.operands if isinstance(value, BlockArgument)]
        return [argument.index for argument in arguments]

    @property
    def _in_place(self) -> tuple[InPlace, ...]:
        """The result over the data, unless those are the updates or indices as well."""
        data, *others = self._numbers
        return () if data in others else ((data, 0),)

    def _update(self, e: Emitter, indices: Buffer, updates: Buffer, result: Buffer) -> None:
        slices, length = self._slices()

        def put(number: Index) -> None:
            target = self._target(e, indices, number)
            _put(e, updates, e.mul(number, length), result, target, length, self.combine)

        e.loop(0, prod(slices), 1, put)

    def _slices(self) -> tuple[tuple[int, ...], int]:
        """How many slices of neighbouring elements are updated along each dim, and their length."""
        shape = shape_of(self.op.updates)
        if isinstance(self.op, ScatterElementsOp):
            return tuple(shape), 1
        outer = len(shape_of(self.op.indices)) - 1
        return tuple(shape[:outer]), prod(shape[outer:])

    def _target(self, e: Emitter, indices: Buffer, number: Index) -> Index:
        """Where in the result the slice `number` begins."""
        shape = shape_of(self.op.data)
        strides = row_major_strides(shape)
        type = element_type_of(self.op.indices)
        without_sign = is_unsigned(type)
        if isinstance(self.op, ScatterElementsOp):
            dim = self.op.dim.value.data
            point = e.coordinates(number, self._slices()[0])
            point[dim] = position_of(e, indices.load_scalar(e, number), shape[dim], without_sign)
            return e.dot(point, strides)
        entries = shape_of(self.op.indices)[-1]
        first = e.mul(number, entries)
        found = [
            position_of(e, indices.load_scalar(e, e.add(first, k)), shape[k], without_sign)
            for k in range(entries)
        ]
        return e.dot(found, strides[:entries])


def _copy_elsewhere(e: Emitter, source: Buffer, target: Buffer, length: int) -> None:
    """Copies what is not already there."""
    here, there = (
        e.insert(memref.ExtractAlignedPointerAsIndexOp.get(b.ref)) for b in (source, target)
    )
    is_elsewhere = e.insert(arith.CmpiOp(here, there, "ne"))

    def vector(position: Index, mask: Value | None) -> None:
        target.store(e, source.load(e, position, mask), position, mask)

    e.when(is_elsewhere, lambda: each(e, length, vector))


def _put(
    e: Emitter,
    updates: Buffer,
    begin: Index,
    result: Buffer,
    target: Index,
    length: int,
    combine: Callable[[Emitter, Sequence[Value]], Value] | None,
) -> None:
    """Combines `length` updates into the result, by vectors where there are that many."""

    def combined(old: Callable[[], Value], new: Value) -> Value:
        return new if combine is None else combine(e, [old(), new])

    def vector(position: Index, mask: Value | None) -> None:
        new, at = updates.load(e, e.add(begin, position), mask), e.add(target, position)
        result.store(e, combined(lambda: result.load(e, at, mask), new), at, mask)

    if length > 1:
        each(e, length, vector)
        return
    value = combined(lambda: result.load_scalar(e, target), updates.load_scalar(e, begin))
    e.effect(memref.StoreOp.get(value, result.ref, [e.index(target)]))
