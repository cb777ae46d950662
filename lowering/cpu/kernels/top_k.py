"""The largest or smallest elements: candidates are collected, and sorted when they are many.

A vector is looked at for no longer than it takes to see that none of its elements comes before the
k-th best of those seen so far. Few candidates are sorted by counting those before each, many by
their digits (D. E. Knuth, "The Art of Computer Programming", volume 3, 5.2 C and 5.2.5 R).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import ClassVar

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.selection import TopKNest, top_k_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sized_ops import SizedTopKOp
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.kernels.selection.candidates import (
    Selection,
    SelectionScratch,
    write_selected,
)
from braid.lowering.cpu.kernels.selection.keys import word_of
from braid.lowering.cpu.kernels.selection.open_rows import WORD, OpenRow
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
"""The factor on the cycles of looking at a vector where its elements are apart in memory."""


@dataclass(frozen=True)
class TopKFamily(SizedFamily):
    """A selection alone in its group, row-major."""

    name: str = "top-k"
    version: int = 1
    anchors: ClassVar = (TopKOp, SizedTopKOp)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "TopK | OpenTopK | None":
        """Match one selection that is not empty, from any number of lines of any length."""
        nest = top_k_nest(group, extents_of)
        if nest is None:
            return None
        extent, k = nest.lines.extent, nest.k
        if not isinstance(extent, int) or not isinstance(k, int):
            row = OpenRow(element_type_of(group.inputs[0]), extent, k)
            return OpenTopK(group, self.unit.for_elements(bytes_of(WORD)), nest, row)
        if extent >= _MOST_INDICES:
            return None
        unit, word = self.unit_of(group.inputs[0]), word_of(element_type_of(group.inputs[0]))
        layout = SelectionScratch(word, unit.lanes, extent, k, nest.lines.inner != 1)
        return TopK(group, unit, nest, layout)


@dataclass(frozen=True, eq=False)
class TopK(VectorCandidate):
    """The lines of a group, and the scratch memory for one of them."""

    nest: TopKNest
    layout: SelectionScratch

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of one pass over each row, a sort for each time that it doubles, and
        memory traffic.
        """
        outer, extent, inner = self.nest.lines.known
        sorts = 1 + ceil(log2(extent / self.layout.collected))
        cycles = extent * (1 if inner == 1 else _STRIDED) / self.unit.lanes * _COMPARED
        cycles += sorts * self.layout.sort_cycles
        clock = self.unit.fma_rate / self.unit.multiply_adds
        return outer * inner * cycles / clock + self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one row in each iteration."""
        nest, layout, inner = self.nest, self.layout, self.nest.lines.inner
        type = element_type_of(self.group.inputs[0])

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            place, lane = e.divmod(index, inner)
            source = e.add(e.mul(place, layout.extent * inner), lane)
            target = e.add(e.mul(place, layout.k * inner), lane)
            row = (source, inner)
            selection = Selection(e, layout, type, nest.is_max, buffers[0], buffers[-1], row)
            selection.emit()
            for are_values, buffer in zip(nest.are_values, buffers[1:], strict=False):
                selection.write(buffer, (target, inner), are_values=are_values)

        grid = nest.lines.outer * inner
        scratch = bytes_of(layout.word) * layout.words
        return grid_kernel(self.group, symbol, self.unit, grid, iteration, scratch_bytes=scratch)


@dataclass(frozen=True, eq=False)
class OpenTopK(VectorCandidate):
    """The lines of a group whose length, or how many of a line are selected, is a size."""

    nest: TopKNest
    row: OpenRow

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the prediction of the selection at likely sizes, which is another candidate's."""
        raise AssertionError("a selection of open lines has no predicted time")

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one row in each iteration."""
        nest, (outer, inner) = self.nest, (self.nest.lines.outer, self.nest.lines.inner)

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            place, lane = e.divmod(index, inner)
            source = e.add(e.mul(place, nest.lines.extent * inner), lane)
            target = e.add(e.mul(place, nest.k * inner), lane)
            row = (buffers[0], (source, inner))
            numbers = self.row.select(e, row, buffers[-1], largest=nest.is_max)
            for are_values, buffer in zip(nest.are_values, buffers[1:], strict=False):
                places = (buffer, (target, inner))
                write_selected(e, numbers, nest.k, row if are_values else None, places)

        grid, scratch = outer * inner, self.row.bytes
        return grid_kernel(self.group, symbol, self.unit, grid, iteration, scratch_bytes=scratch)
