"""Paddings that copy their operand: long pieces in vectors, then the border around them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from braid.analysis.flexible_layouts import flexible_choices
from braid.analysis.kernel_family import Kernel, KernelRequest, LayoutChoice, Schedule
from braid.analysis.strided_storage import boxes_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel
from braid.lowering.cpu.kernels.emit.machine import VectorUnit, host_vector_unit
from braid.lowering.cpu.kernels.groups.layout_choices import typed_choice
from braid.lowering.cpu.kernels.groups.loop_dims import LoopDim, merged
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds, stored_bytes
from braid.lowering.cpu.kernels.padding.border import write_border
from braid.lowering.cpu.kernels.padding.match import match_padding


@dataclass(frozen=True)
class PadFamily:
    """`braid.pad` alone in its group, of an operand that lies elsewhere.

    Layouts: the same on both sides, any; dims that are stored in blocks are not padded.
    """

    unit: VectorUnit = field(default_factory=host_vector_unit)
    name: str = "pad"

    def accepts(self, group: FusedOp) -> bool:
        """A padding of numbers with at least one element."""
        return bool(self.layouts(group))

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """Row-major first."""
        op = _match(group)
        return () if op is None else [c for c in flexible_choices(group) if _fits(op, c)]

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Nothing to choose."""
        yield {}

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Nothing to choose."""
        return {}

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Memory traffic."""
        return moving_seconds(stored_bytes(group, choice), self.unit)

    def emit(self, request: KernelRequest) -> Kernel:
        """One slice of the outermost dim per grid iteration; the border belongs to the first."""
        op = _match(request.group)
        assert op is not None
        layout = typed_choice(request.group).results[0]
        start, dims = _inside(op, layout)
        *outer, inner = dims
        grid = outer[0].extent if outer else 1

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            e.branch(index, 1, lambda: write_border(e, op, layout, buffers[-1]), lambda: None)
            first = outer[0].strides if outer else (0, 0)
            source = e.mul(index, first[0])
            target = e.add(e.mul(index, first[1]), start)
            _copy(e, buffers, [*outer[1:], inner], source, target)

        return grid_kernel(request, self.unit, grid, iteration)


def _match(group: FusedOp) -> PadOp | None:
    op = match_padding(group)
    if op is None or boxes_of(group) or min(shape_of(op.input), default=0) < 1:
        return None
    return op


def _fits(op: PadOp, choice: LayoutChoice) -> bool:
    layout = choice.results[0]
    if choice.operands[0] != layout:
        return False
    sides = zip(op.low.get_values(), op.high.get_values(), shape_of(op.input), strict=True)
    return all(
        layout.block(dim) == 1 or (low == high == 0 and extent % layout.block(dim) == 0)
        for dim, (low, high, extent) in enumerate(sides)
    )


def _inside(op: PadOp, layout: Layout) -> tuple[int, tuple[LoopDim, ...]]:
    """Where the operand begins in the result, and loops over it: strides in operand and result."""
    extents = layout.storage_shape(shape_of(op.input))
    strides = layout.storage_strides(shape_of(op.output))
    start = sum(
        op.low.get_values()[dim.dim] * stride
        for dim, stride in zip(layout.dims, strides, strict=True)
        if dim.extent is None
    )
    dense = [math.prod(extents[place + 1 :]) for place in range(len(extents))]
    columns = zip(extents, zip(dense, strides, strict=True), strict=True)
    dims = merged([LoopDim(extent, pair) for extent, pair in columns])
    return start, dims or (LoopDim(1, (1, 1)),)


def _copy(
    e: Emitter, buffers: Sequence[Buffer], dims: Sequence[LoopDim], source: Index, target: Index
) -> None:
    dim, rest = dims[0], dims[1:]
    if rest or dim.strides != (1, 1):

        def step(i: Index) -> None:
            places = (
                e.add(source, e.mul(i, dim.strides[0])),
                e.add(target, e.mul(i, dim.strides[1])),
            )
            _copy(e, buffers, rest or [LoopDim(1, (1, 1))], *places)

        e.loop(0, dim.extent, 1, step)
        return
    count = dim.extent - dim.extent % e.lanes

    def move(i: Index, left: int) -> None:
        mask = e.mask(left) if left < e.lanes else None
        value = buffers[0].load(e, e.add(source, i), mask)
        buffers[-1].store(e, value, e.add(target, i), mask)

    e.loop(0, count, e.lanes, lambda i: move(i, e.lanes))
    if count < dim.extent:
        move(count, dim.extent - count)
