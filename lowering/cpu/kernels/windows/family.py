"""What the families of depthwise convolution and pooling share: all but match and cost."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel
from braid.lowering.cpu.kernels.groups.layout_choices import (
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds, stored_bytes
from braid.lowering.cpu.kernels.groups.vector_family import VectorFamily
from braid.lowering.cpu.kernels.pointwise.points import Pointwise
from braid.lowering.cpu.kernels.windows.lines import window_kernel
from braid.lowering.cpu.kernels.windows.problem import (
    Combine,
    WindowProblem,
    stored_tensors,
    used_lanes,
    window_layouts,
)
from braid.targets.kernels.kernel_family import Kernel, KernelRequest, Schedule

_WEIGHT = Layout.parse("bcda")
"""Channels innermost."""


@dataclass(frozen=True)
class WindowMatch:
    """An op over unpadded windows of a block argument of f32 in two dims, and its epilogue.

    Every output is the `combine` of the inputs in its window, each with the weight if there is
    one, from `neutral` on.
    """

    op: ConvOp | PoolOp
    input: BlockArgument
    weight: BlockArgument | None
    points: Pointwise
    neutral: float
    combine: Combine

    @property
    def steps(self) -> int:
        """How often `combine` is computed."""
        batch, channels, height, width = self.points.shape
        rows, columns = self.op.windows.size
        return batch * channels * height * width * rows * columns

    def choice(self, group: FusedOp, layout: Layout) -> LayoutChoice:
        """Feature maps in `layout`, the weight with channels innermost unless they are lines."""
        fixed = {self.input.index: layout}
        if self.weight is not None:
            fixed[self.weight.index] = Layout.row_major(4) if layout.is_row_major else _WEIGHT
        return uniform_choice(group, layout, fixed)


@dataclass(frozen=True)
class WindowFamily(VectorFamily):
    """Takes feature maps channels last, in blocks of a vector, or first for small strides."""

    @abstractmethod
    def match(self, group: FusedOp) -> WindowMatch | None:
        """The op and its epilogue, None for a group that is another family's."""

    @abstractmethod
    def arithmetic_seconds(self, match: WindowMatch, choice: LayoutChoice) -> float:
        """Time of the arithmetic if all lanes are used."""

    @abstractmethod
    def default_schedule(self, group: FusedOp) -> Schedule:
        """Neighbouring outputs (`columns`) and vectors of channels (`vectors`) of a tile."""

    def matched(self, group: FusedOp) -> WindowMatch:
        """The match of a group that the family accepts."""
        match = self.match(group)
        assert match is not None, "the family was asked for a group it does not accept"
        return match

    def accepts(self, group: FusedOp) -> bool:
        """One op over windows of block arguments, the rest elementwise on its result."""
        return self.match(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """Channels last, then in blocks, then first."""
        match = self.match(group)
        if match is None:
            return ()
        layouts = window_layouts(match.op.windows, match.points.shape[1], self.unit.lanes)
        choices = [match.choice(group, layout) for layout in layouts]
        return [c for c in choices if stored_tensors(match.input, match.points, c) is not None]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous; the weight is on its own."""
        match = self.match(group)
        if match is None:
            return False
        if match.weight is not None and choice.operands[match.weight.index].strides is not None:
            return False
        stored = stored_tensors(match.input, match.points, choice)
        return results_alike(choice) and stored is not None

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """The larger of arithmetic and memory traffic."""
        match = self.matched(group)
        arithmetic = self.arithmetic_seconds(match, choice)
        arithmetic /= used_lanes(match.points.shape, choice.results[0], self.unit.lanes)
        return max(arithmetic, moving_seconds(stored_bytes(group, choice), self.unit))

    def emit(self, request: KernelRequest) -> Kernel:
        """One line of outputs for a block of channels, or one channel, per grid iteration."""
        match = self.matched(request.group)
        schedule = self.schedule_of(request)
        stored = stored_tensors(match.input, match.points, stored_choice(request.group))
        assert stored is not None, "the family was asked for layouts it did not offer"
        problem = WindowProblem(
            anchor=match.op.output,
            points=match.points,
            windows=match.op.windows,
            stored=stored,
            lanes=self.unit.lanes,
            x=match.input.index,
            weight=None if match.weight is None else match.weight.index,
            neutral=match.neutral,
            combine=match.combine,
        )
        kernel = window_kernel(problem, schedule)
        return grid_kernel(request, self.unit, kernel.grid, kernel.iteration, problem.in_place)
