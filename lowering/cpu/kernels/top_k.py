"""The largest or smallest elements: candidates are collected, and sorted when they are many.

A vector is looked at for no longer than it takes to see that none of its elements comes before the
k-th best of those seen so far. Few candidates are sorted by counting those before each, many by
their digits (D. E. Knuth, "The Art of Computer Programming", volume 3, 5.2 C and 5.2.5 R).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2, prod
from typing import ClassVar

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of, is_number
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.kernels.selection.candidates import Room, Selection
from braid.lowering.cpu.kernels.selection.keys import word_of
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_MOST_INDICES = 1 << 31

_COMPARED = 6.0
"""Cycles for a vector to be looked at."""

_STRIDED = 16.0
"""How many times as long that takes where its elements are apart."""


@dataclass(frozen=True)
class TopKFamily(VectorFamily):
    """A selection alone in its group, row-major."""

    name: str = "top-k"
    version: int = 1
    anchors: ClassVar = (TopKOp,)

    def match(self, group: FusedOp) -> "_TopK | None":
        """One selection that is not empty."""
        op = group.body.block.first_op
        if not isinstance(op, TopKOp) or op.next_op is not group.terminator:
            return None
        shape, type = shape_of(op.input), element_type_of(op.input)
        if DYNAMIC in shape or 0 in shape_of(op.values) or not group.results:
            return None
        if boxes_of(group) or overlap_of(group) is not None:
            return None
        if not is_number(type):
            return None
        if shape[op.dim.value.data] >= _MOST_INDICES:
            return None
        return _TopK(group, self.unit_of(op.input), op)


@dataclass(frozen=True, eq=False)
class _TopK(VectorCandidate):
    op: TopKOp

    def choices(self) -> Sequence[LayoutChoice]:
        """Row-major."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """One pass over each row, a sort for each time that it doubles, and memory traffic."""
        outer, extent, inner = self._extents
        room = self._room
        sorts = 1 + ceil(log2(extent / room.collected))
        cycles = extent * (1 if inner == 1 else _STRIDED) / self.unit.lanes * _COMPARED
        cycles += sorts * room.sort_cycles
        clock = self.unit.fma_rate / self.unit.multiply_adds
        return outer * inner * cycles / clock + self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """One row in each iteration."""
        outer, extent, inner = self._extents

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            place, lane = e.divmod(index, inner)
            source = e.add(e.mul(place, extent * inner), lane)
            target = e.add(e.mul(place, self._room.k * inner), lane)
            selection = Selection(
                e,
                self._room,
                element_type_of(self.op.input),
                bool(self.op.largest.value.data),
                buffers[0],
                buffers[-1],
                (source, inner),
            )
            selection.emit()
            for value, buffer in zip(self.group.terminator.arguments, buffers[1:], strict=False):
                are_values = value is self.op.values
                selection.write(buffer, (target, inner), are_values=are_values)

        grid = outer * inner
        room = self._room
        return grid_kernel(
            self.group,
            symbol,
            self.unit,
            grid,
            iteration,
            scratch_bytes=bytes_of(room.word) * room.words,
        )

    @cached_property
    def _room(self) -> Room:
        _, extent, inner = self._extents
        word = word_of(element_type_of(self.op.input))
        return Room(word, self.unit.lanes, extent, self.op.k.value.data, inner > 1)

    @cached_property
    def _extents(self) -> tuple[int, int, int]:
        """Of the dims outside of the one that is searched, of that, and of those inside of it."""
        shape, dim = shape_of(self.op.input), self.op.dim.value.data
        return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])
