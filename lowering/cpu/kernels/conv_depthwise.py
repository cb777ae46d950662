"""Depthwise convolution with an elementwise epilogue: vectors run over channels or along lines."""

from collections.abc import Iterator
from dataclasses import dataclass

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.conv.match import match_convolution
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Value
from braid.lowering.cpu.kernels.windows.family import WindowFamily, WindowMatch
from braid.lowering.cpu.kernels.windows.lines import lines_schedule
from braid.targets.kernels.kernel_family import Schedule

_EFFICIENCY = {"blocks": 0.9, "channels": 0.75, "lines": 0.5}
"""Part of the peak that is reached, measured: neighbouring outputs share the loads of channels, in
pieces of whole images or of pixels; vectors along lines are loaded for every multiply-add, most
from two lines of the cache."""

_STRIDED_EFFICIENCY = 0.6
"""The part of that with strides: fewer loads are shared."""


@dataclass(frozen=True)
class ConvDepthwiseFamily(WindowFamily):
    """`braid.conv` of f32 with as many groups as input and output channels, without padding.

    Layouts: channels last, or in blocks of a vector, with the weight's channels innermost (`bcda`);
    channels first, with a row-major weight, for strides of at most 2.
    """

    name: str = "conv-depthwise"

    def match(self, group: FusedOp) -> WindowMatch | None:
        """One depthwise convolution of block arguments, the rest elementwise on its result."""
        found = match_convolution(group)
        if found is None or not found.is_depthwise:
            return None
        return WindowMatch(found.op, found.input, found.weight, found.points, 0.0, _multiply_add)

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Neighbouring outputs and channel vectors of a tile."""
        yield self.default_schedule(group)
        for vectors in (1, 2, 4):
            for columns in (8, 4, 14, 2):
                if columns * vectors <= self.unit.registers // 2:
                    yield {"columns": columns, "vectors": vectors}

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Few enough accumulators to leave room for a line of inputs and the weights.

        With a stride, neighbouring outputs share no loads, and more channels at once read longer
        pieces of memory.
        """
        match = self.matched(group)
        _, channels, _, width = match.points.shape
        if stored_choice(group).results[0].is_row_major:
            return lines_schedule(width, self.unit.lanes)
        if match.op.windows.strides[1] > 1 and channels > self.unit.lanes:
            return {"columns": min(4, width), "vectors": 2}
        limit = max(1, self.unit.registers // 4 - 1)
        tiles = -(-width // limit)
        return {"columns": -(-width // tiles), "vectors": 1}

    def arithmetic_seconds(self, match: WindowMatch, choice: LayoutChoice) -> float:
        """A multiply-add for every step, at the part of the peak that was measured."""
        efficiency = _EFFICIENCY[_vectors_of(choice)]
        efficiency *= _STRIDED_EFFICIENCY if match.op.windows.strides[1] > 1 else 1.0
        return 2 * match.steps / (self.unit.flops * efficiency)


def _vectors_of(choice: LayoutChoice) -> str:
    """What vectors hold, by the result's layout."""
    if choice.results[0].is_row_major:
        return "lines"
    return "channels" if choice.results[0].is_permutation else "blocks"


def _multiply_add(e: Emitter, sum: Value, x: Value, weight: Value | None) -> Value:
    assert weight is not None
    return e.fma(x, weight, sum)
