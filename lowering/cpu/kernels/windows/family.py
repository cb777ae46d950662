"""What the families of depthwise convolution and pooling share: all but match and cost."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, BlockArgument, SSAValue

from braid.analysis.nests.pointwise import Pointwise
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.windows import Windows
from braid.lowering.cpu.kernels.contraction.wide_buffer import WideBuffer
from braid.lowering.cpu.kernels.groups.layout_choices import (
    outputs_innermost,
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate
from braid.lowering.cpu.kernels.windows.lines import WindowSchedule, window_kernel
from braid.lowering.cpu.kernels.windows.problem import (
    NEAR_BYTES,
    ChannelGroups,
    Combine,
    WindowProblem,
    has_lines,
    stored_tensors,
    used_lanes,
    window_layouts,
)
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.targets.kernels.kernel_family import Kernel


@dataclass(frozen=True, eq=False)
class WindowCandidate(ScheduledCandidate[WindowSchedule]):
    """An op over unpadded windows of a block argument, whose result is `anchor`, and its epilogue.

    Takes feature maps channels last, in blocks of a vector, or first for small strides. Every
    output is the `combine` of the inputs in its window, each with the weight if there is one,
    from `neutral` on; `is_sum` says that it adds. Both are combined in `accumulator` where there is
    one.
    """

    anchor: SSAValue
    windows: Windows
    input: BlockArgument
    weight: BlockArgument | None
    points: Pointwise
    neutral: float
    combine: Combine
    is_sum: bool
    accumulator: Attribute | None = None
    groups: ChannelGroups = field(default_factory=ChannelGroups)

    @abstractmethod
    def arithmetic_seconds(self, choice: LayoutChoice) -> float:
        """Time of the arithmetic if all lanes are used."""

    @property
    def steps(self) -> int:
        """How often `combine` is computed."""
        return math.prod((*self.points.shape, *self.windows.size))

    @property
    def has_lines(self) -> bool:
        """Whether vectors run along lines, in the types of the group."""
        return has_lines(self.points.shape, stored_choice(self.group).results[0])

    @property
    def is_near(self) -> bool:
        """Whether the input, as the group has it, stays in the second-level cache."""
        layout = stored_choice(self.group).operands[self.input.index]
        return storage_bytes(self.input.type, layout) <= NEAR_BYTES

    def choices(self) -> Sequence[LayoutChoice]:
        """Channels last, then in blocks, then first."""
        choices = map(self._choice, self.map_layouts())
        return [c for c in choices if stored_tensors(self.input, self.points, c) is not None]

    def map_layouts(self) -> Sequence[Layout]:
        """Those of feature maps, the preferred one first."""
        return window_layouts(self.windows, self.points.shape, self.unit.lanes)

    def weight_layout(self, maps: Layout) -> Layout:
        """That of the weight where feature maps are stored in `maps`: unless they are lines, with
        channels innermost."""
        return maps if maps.is_row_major else outputs_innermost(maps.rank)

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous; the weight is on its own."""
        if self.weight is not None and choice.operands[self.weight.index].strides is not None:
            return False
        stored = stored_tensors(self.input, self.points, choice)
        return results_alike(choice) and stored is not None

    def seconds(self, choice: LayoutChoice) -> float:
        """The larger of arithmetic and memory traffic."""
        arithmetic = self.arithmetic_seconds(choice)
        arithmetic /= used_lanes(self.points.shape, choice.results[0], self.unit.lanes)
        return max(arithmetic, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: WindowSchedule) -> Kernel:
        """One line of outputs for a block of channels, or one channel, per grid iteration."""
        stored = stored_tensors(self.input, self.points, stored_choice(self.group))
        assert stored is not None, "the family was asked for layouts it did not offer"
        problem = WindowProblem(
            anchor=self.anchor,
            points=self.points,
            windows=self.windows,
            stored=stored,
            lanes=self.unit.lanes,
            x=self.input.index,
            weight=None if self.weight is None else self.weight.index,
            neutral=self.neutral,
            combine=self.combine,
            is_sum=self.is_sum,
            is_near=self.is_near,
            groups=self.groups,
        )
        kernel = window_kernel(problem, schedule)

        def body(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            kernel.iteration(e, self._widened(buffers), index)

        return grid_kernel(
            self.group,
            symbol,
            self.unit,
            kernel.grid,
            body,
            problem.in_place,
            is_unrolled=not problem.is_short,
        )

    def _widened(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        """The buffers, of which those of input and weight are read as the accumulator."""
        if self.accumulator is None:
            return buffers
        result = [*buffers]
        for argument in (self.input, self.weight):
            if argument is not None:
                own, stored = buffers[argument.index], element_type_of(argument)
                result[argument.index] = WideBuffer(own.ref, self.accumulator, stored)
        return result

    def _choice(self, layout: Layout) -> LayoutChoice:
        """Feature maps in `layout`.

        Results of one number for each channel are row-major, which is as they lie in `layout`.
        """
        single = math.prod(self.points.shape[2:]) == 1
        result = Layout.row_major(layout.rank) if single else layout
        fixed = {self.input.index: layout}
        if self.weight is not None:
            fixed[self.weight.index] = self.weight_layout(layout)
        return uniform_choice(self.group, result, fixed)
