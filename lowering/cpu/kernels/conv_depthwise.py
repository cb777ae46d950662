"""Depthwise convolution with an elementwise epilogue: vectors run over channels or along lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from braid.analysis.kernel_family import Kernel, KernelRequest, LayoutChoice, Schedule
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.choices import (
    feature_choice,
    results_alike,
    typed_choice,
)
from braid.lowering.cpu.kernels.conv_match import ConvMatch, match_convolution
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Value
from braid.lowering.cpu.kernels.emit.function import grid_kernel
from braid.lowering.cpu.kernels.emit.machine import VectorUnit, host_vector_unit
from braid.lowering.cpu.kernels.traffic import moving_seconds, stored_bytes
from braid.lowering.cpu.kernels.window_lines import lines_schedule, window_kernel
from braid.lowering.cpu.kernels.windows import (
    WindowProblem,
    stored_tensors,
    used_lanes,
    window_layouts,
)

_WEIGHT = Layout.parse("bcda")
"""Channels innermost."""

_EFFICIENCY = {"blocks": 0.9, "channels": 0.75, "lines": 0.5}
"""Part of the peak that is reached, measured: neighbouring outputs share the loads of channels, in
pieces of whole images or of pixels; vectors along lines are loaded for every multiply-add, most
from two lines of the cache."""

_STRIDED_EFFICIENCY = 0.6
"""The part of that with strides: fewer loads are shared."""


@dataclass(frozen=True)
class ConvDepthwiseFamily:
    """`braid.conv` of f32 with as many groups as input and output channels, without padding.

    Layouts: channels last, or in blocks of a vector, with the weight's channels innermost (`bcda`);
    channels first, with a row-major weight, for strides of at most 2.
    """

    unit: VectorUnit = field(default_factory=host_vector_unit)
    name: str = "conv-depthwise"

    def accepts(self, group: FusedOp) -> bool:
        """One depthwise convolution of block arguments, the rest elementwise on its result."""
        return _match(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """Channels last, then in blocks, then first."""
        match = _match(group)
        if match is None:
            return ()
        choices = [
            feature_choice(
                group, {match.input.index: layout, match.weight.index: _weight(layout)}, layout
            )
            for layout in window_layouts(match.op.windows, match.points.shape[1], self.unit.lanes)
        ]
        return [c for c in choices if stored_tensors(match.input, match.points, c) is not None]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous."""
        match = _match(group)
        if match is None or choice.operands[match.weight.index].strides is not None:
            return False
        return (
            results_alike(choice) and stored_tensors(match.input, match.points, choice) is not None
        )

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
        match = _match(group)
        assert match is not None
        _, channels, _, width = match.points.shape
        if typed_choice(group).results[0].is_row_major:
            return lines_schedule(width, self.unit.lanes)
        if match.op.windows.strides[1] > 1 and channels > self.unit.lanes:
            return {"columns": min(4, width), "vectors": 2}
        limit = max(1, self.unit.registers // 4 - 1)
        tiles = -(-width // limit)
        return {"columns": -(-width // tiles), "vectors": 1}

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """The larger of arithmetic and memory traffic."""
        match = _match(group)
        assert match is not None
        batch, channels, height, width = match.points.shape
        kh, kw = match.op.windows.size
        flops = 2 * batch * channels * height * width * kh * kw
        efficiency = _EFFICIENCY[_vectors_of(choice)]
        efficiency *= _STRIDED_EFFICIENCY if match.op.windows.strides[1] > 1 else 1.0
        arithmetic = flops / (self.unit.flops * efficiency)
        arithmetic /= used_lanes(match.points.shape, choice.results[0], self.unit.lanes)
        return max(arithmetic, moving_seconds(stored_bytes(group, choice), self.unit))

    def emit(self, request: KernelRequest) -> Kernel:
        """One line of outputs for a block of channels, or one channel, per grid iteration."""
        match = _match(request.group)
        assert match is not None
        schedule = {**self.default_schedule(request.group), **request.schedule}
        stored = stored_tensors(match.input, match.points, typed_choice(request.group))
        assert stored is not None, "the family was asked for layouts it did not offer"
        problem = WindowProblem(
            anchor=match.op.output,
            points=match.points,
            windows=match.op.windows,
            stored=stored,
            lanes=self.unit.lanes,
            x=match.input.index,
            weight=match.weight.index,
            neutral=0.0,
            combine=_multiply_add,
        )
        kernel = window_kernel(problem, schedule)
        return grid_kernel(request, self.unit, kernel.grid, kernel.iteration, problem.in_place)


def _vectors_of(choice: LayoutChoice) -> str:
    """What vectors hold, by the result's layout."""
    if choice.results[0].is_row_major:
        return "lines"
    return "channels" if choice.results[0].is_permutation else "blocks"


def _weight(layout: Layout) -> Layout:
    """How the weight is stored for feature maps in `layout`."""
    return Layout.row_major(4) if layout.is_row_major else _WEIGHT


def _match(group: FusedOp) -> ConvMatch | None:
    match = match_convolution(group)
    return match if match is not None and match.is_depthwise else None


def _multiply_add(e: Emitter, sum: Value, x: Value, weight: Value | None) -> Value:
    assert weight is not None
    return e.fma(x, weight, sum)
