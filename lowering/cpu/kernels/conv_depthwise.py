"""Depthwise convolution with an elementwise epilogue: vectors run over channels or along lines."""

from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily
from braid.lowering.cpu.kernels.windows.lines import WindowSchedule
from braid.lowering.cpu.kernels.windows.products import ProductCandidate, grouped_convolution

_EFFICIENCY = {"blocks": 0.9, "channels": 0.75, "lines": 0.5}
"""The measured fraction of the peak: neighbouring outputs share the loads of channels, in pieces of
whole images or of pixels; vectors along rows are loaded for every multiply-add, most from two cache
lines."""

_STRIDED_EFFICIENCY = 0.6
"""The part of that with strides: fewer loads are shared."""


@dataclass(frozen=True)
class ConvDepthwiseFamily(SizedFamily):
    """`braid.conv` of f32, f64 or bytes with as many groups as input and output channels.

    Without padding. Layouts: channels last, or in blocks of a vector, with the weight's channels
    innermost (`bcda`); channels first, with a row-major weight, for strides of at most 2.
    """

    name: str = "conv-depthwise"
    version: int = 11
    anchors: ClassVar = (ConvOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "_Depthwise | None":
        """Match one depthwise convolution of block arguments, the rest elementwise on its
        result.
        """
        found = grouped_convolution(group, is_open=extents_of is not shape_of)
        if found is None or not found.is_depthwise:
            return None
        return _Depthwise(group, self.unit_of(found.op.output), found.over_windows, extents_of)


@dataclass(frozen=True, eq=False)
class _Depthwise(ProductCandidate):
    def default_tile(self) -> WindowSchedule:
        """Return a tile with few enough accumulators to leave registers for a line of inputs and
        the weights.

        Two vectors of channels read longer pieces of memory than one. With 16 registers they leave
        none for neighbouring outputs that share loads; outputs with a stride share none.
        """
        channels, width = self.op.channels, self.op.width
        if channels > self.unit.lanes and (self.is_strided or self.unit.registers >= 32):
            return WindowSchedule(min(4, width), 2)
        limit = max(1, self.unit.registers // 4 - 1)
        return WindowSchedule(-(-width // -(-width // limit)), 1)

    def arithmetic_seconds(self, choice: LayoutChoice) -> float:
        """Return a multiply-add for every step, at the part of the peak that was measured."""
        efficiency = _EFFICIENCY[_vectors_of(choice.operands[self.op.input.index])]
        efficiency *= _STRIDED_EFFICIENCY if self.is_strided else 1.0
        return 2 * self.op.steps / (self.unit.flops * efficiency)


def _vectors_of(layout: Layout) -> str:
    """Return the dim that vectors run along, by the layout of the input."""
    if layout.is_row_major:
        return "lines"
    return "channels" if layout.is_permutation else "blocks"
