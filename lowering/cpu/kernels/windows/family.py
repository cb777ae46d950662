"""Define what the families of depthwise convolution and pooling share: all but match and cost."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.windows import WindowNest, WindowOp, has_lines, window_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import element_type_of, shape_of, tensor_type
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.lowering.cpu.kernels.contraction.wide_buffer import WideBuffer
from braid.lowering.cpu.kernels.groups.layout_choices import (
    outputs_innermost,
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate
from braid.lowering.cpu.kernels.windows.combination import MAX_UNROLLED_WINDOW, is_short
from braid.lowering.cpu.kernels.windows.lines import WindowSchedule, window_kernel
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.targets.kernels.kernel_family import Kernel

_MAX_LINE_STRIDE = 2
"""Steps of windows along rows of vectors: a shuffle takes every other element of two vectors."""

_NEAR_BYTES = 1 << 20
"""Half of the second-level cache: depthwise convolutions of 14² and 28² pixels below it take 10 to
40 % less time block by block where their operands are in caches, those above it 30 % more."""


@dataclass(frozen=True, eq=False)
class WindowCandidate(ScheduledCandidate[WindowSchedule]):
    """An op over windows.

    Takes feature maps channels last, in blocks of a vector, or first for small strides. There may
    be any number of images, where `extents_of` gives a size.
    """

    op: WindowOp
    extents_of: ExtentsOf = shape_of

    @abstractmethod
    def arithmetic_seconds(self, choice: LayoutChoice) -> float:
        """Time of the arithmetic if all lanes are used."""

    @property
    def has_lines(self) -> bool:
        """Return whether vectors run along lines, in the types of the group."""
        return has_lines(self.op.points.shape, stored_choice(self.group).results[0])

    @property
    def is_near(self) -> bool:
        """Return whether the input, as the group has it, stays in the second-level cache.

        An open number of images counts as one image; images are far apart if they have open
        extents.
        """
        input = self.op.input
        layout, (images, *image) = stored_choice(self.group).operands[input.index], shape_of(input)
        if DYNAMIC in image:
            return False
        type = tensor_type(element_type_of(input), (max(images, 1), *image))
        return storage_bytes(type, layout) <= _NEAR_BYTES

    def choices(self) -> Sequence[LayoutChoice]:
        """Return channels last, then in blocks, then first."""
        return [
            choice
            for choice in map(self._choice, self.map_layouts())
            if self.supports_open_layout(choice)
        ]

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """Return where vectors are contiguous."""
        return self._nest(choice) is not None

    def _nest(self, choice: LayoutChoice) -> WindowNest | None:
        return window_nest(self.op, choice, self.unit.lanes, self.extents_of)

    def map_layouts(self) -> Sequence[Layout]:
        """Return the layouts of feature maps that a kernel supports, the preferred one first."""
        rank = len(self.op.points.shape)
        layouts = [Layout.channels_last(rank)]
        if rank == 4 and self.op.channels % self.unit.lanes == 0:
            layouts.append(Layout.channel_blocks(rank, self.unit.lanes))
        lines, windows = Layout.row_major(rank), self.op.windows
        near = windows.strides[-1] <= _MAX_LINE_STRIDE and windows.size[-1] <= MAX_UNROLLED_WINDOW
        if near and has_lines(self.op.points.shape, lines):
            layouts.append(lines)
        return layouts

    def weight_layout(self, maps: Layout) -> Layout:
        """Return the layout of the weight for feature maps stored in `maps`: channels innermost,
        unless maps are row-major.
        """
        return maps if maps.is_row_major else outputs_innermost(maps.rank)

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous; the weight is on its own."""
        weight = self.op.weight
        if weight is not None and choice.operands[weight.index].strides is not None:
            return False
        return results_alike(choice) and self.supports_open_layout(choice)

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of arithmetic and memory traffic."""
        lanes, is_along = self.unit.lanes, has_lines(self.op.points.shape, choice.results[0])
        extent = self.op.width if is_along else self.op.channels
        used_lanes = extent / (-(-extent // lanes) * lanes)
        return max(self.arithmetic_seconds(choice) / used_lanes, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: WindowSchedule) -> Kernel:
        """Emit one line of outputs for a block of channels, or one channel, per grid iteration."""
        nest = self._nest(stored_choice(self.group))
        assert nest is not None, "the family was asked for layouts it did not offer"
        kernel = window_kernel(nest, schedule, is_near=self.is_near)

        def body(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            kernel.iteration(e, self._widened(buffers), index)

        return grid_kernel(
            self.group,
            symbol,
            self.unit,
            kernel.grid,
            body,
            nest.in_place,
            is_unrolled=not is_short(nest),
        )

    def _widened(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        """Return the buffers; those of input and weight are read as the accumulator's type."""
        if self.op.accumulator is None:
            return buffers
        result = [*buffers]
        for argument in (self.op.input, self.op.weight):
            if argument is not None:
                own, stored = buffers[argument.index], element_type_of(argument)
                result[argument.index] = WideBuffer(own.ref, self.op.accumulator, stored)
        return result

    def _choice(self, layout: Layout) -> LayoutChoice:
        """Return the layouts with feature maps in `layout`.

        Results with one element for each channel are row-major, which equals `layout` in memory.
        """
        single = prod(self.op.points.shape[2:]) == 1
        result = Layout.row_major(layout.rank) if single else layout
        fixed = {self.op.input.index: layout}
        if self.op.weight is not None:
            fixed[self.op.weight.index] = self.weight_layout(layout)
        return uniform_choice(self.group, result, fixed)
