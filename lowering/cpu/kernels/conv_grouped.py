"""Convolution in groups of few channels, several of which fill a vector, with an epilogue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import packed_weight
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily
from braid.lowering.cpu.kernels.windows.lines import WindowSchedule
from braid.lowering.cpu.kernels.windows.products import ProductCandidate, grouped_convolution

_MOST_LOADS = 2
"""Vectors that the inputs of a vector of outputs may fill: one shuffle takes from two."""

_EFFICIENCY, _FAR_EFFICIENCY, _NEAR_BYTES = 0.55, 0.42, 16
"""The fraction of the peak that is reached, measured relative to the prediction of `conv-direct`
for vectors along rows: if shuffles stay within this many bytes, and if not."""


@dataclass(frozen=True)
class ConvGroupedFamily(SizedFamily):
    """`braid.conv` of f32, f64 or bytes in groups of fewer outputs than a vector has lanes.

    A vector has whole groups, whose inputs are at most two vectors. Without padding. Layouts:
    channels last, or in blocks of a vector where groups have as many outputs as inputs; the weight
    in blocks of a vector of output channels (`Acdb16a`).
    """

    name: str = "conv-grouped"
    version: int = 2
    anchors: ClassVar = (ConvOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "_Grouped | None":
        """Match one such convolution of block arguments, the rest elementwise on its result."""
        found = grouped_convolution(group, is_open=extents_of is not shape_of)
        if found is None or found.is_depthwise:
            return None
        unit = self.unit_of(found.op.output)
        candidate = _Grouped(group, unit, found.over_windows, extents_of)
        whole = found.columns < unit.lanes and unit.lanes % found.columns == 0
        loaded = candidate.op.groups.inputs_of(unit.lanes)
        return candidate if whole and loaded <= _MOST_LOADS * unit.lanes else None


@dataclass(frozen=True, eq=False)
class _Grouped(ProductCandidate):
    def map_layouts(self) -> Sequence[Layout]:
        """Return channels last, or in blocks."""
        alike = self.op.groups.inputs == self.op.groups.outputs
        layouts = super().map_layouts()
        last = layouts[0]
        return [each for each in layouts if each == last or (alike and not each.is_row_major)]

    def weight_layout(self, maps: Layout) -> Layout:
        """Return the weight in blocks of a vector."""
        return packed_weight(maps.rank, self.unit.lanes)

    def default_tile(self) -> WindowSchedule:
        """Return as many neighbouring outputs as leave registers for the weights of a line.

        If these are few, two vectors of channels, which are longer pieces of memory: 0.5 of
        the time for 1 × 1.
        """
        channels, width = self.op.channels, self.op.width
        limit, weights = self.unit.registers // 4, self.op.groups.inputs * self.op.windows.size[-1]
        is_even = channels % (2 * self.unit.lanes) == 0
        vectors = 2 if is_even and weights <= limit else 1
        return WindowSchedule(-(-width // -(-width // limit)), vectors)

    def arithmetic_seconds(self, choice: LayoutChoice) -> float:
        """Return a multiply-add for every step and input of a group."""
        is_near = self.op.groups.outputs * self.unit.element_bytes <= _NEAR_BYTES
        efficiency = _EFFICIENCY if is_near else _FAR_EFFICIENCY
        return 2 * self.op.steps * self.op.groups.inputs / (self.unit.flops * efficiency)
