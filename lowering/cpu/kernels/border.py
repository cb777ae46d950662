"""Paddings whose operand lies in the padded tensor already: only the border is written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from braid.analysis.kernel_family import Kernel, KernelRequest, LayoutChoice, Schedule
from braid.analysis.strided_storage import boxes_of, stored_choice
from braid.analysis.tensor_storage import storage_bytes
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.lowering.cpu.kernels.emit.function import grid_kernel
from braid.lowering.cpu.kernels.emit.machine import VectorUnit, host_vector_unit
from braid.lowering.cpu.kernels.emit.table import is_number
from braid.lowering.cpu.kernels.iteration import LoopDim, merged
from braid.lowering.cpu.kernels.traffic import moving_seconds

Range = tuple[int, int]


@dataclass(frozen=True)
class BorderFamily:
    """`braid.pad` of a tensor that lies inside the result, alone in its group.

    Layouts: any; dims that are stored in blocks are not padded.
    """

    unit: VectorUnit = field(default_factory=host_vector_unit)
    name: str = "border"

    def accepts(self, group: FusedOp) -> bool:
        """A padding for which it was decided that its operand lies in place."""
        return _match(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """The layouts in which that was decided."""
        return () if _match(group) is None else [stored_choice(group)]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """With neighbouring elements along the innermost dim."""
        return choice.results[0].storage_strides(shape_of(group.results[0]))[-1] == 1

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Nothing to choose."""
        yield {}

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Nothing to choose."""
        return {}

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Memory traffic of the border."""
        inner, outer = (storage_bytes(v.type) for v in (group.operands[0], group.results[0]))
        return moving_seconds(outer - inner, self.unit)

    def emit(self, request: KernelRequest) -> Kernel:
        """One slab of the border after the other."""
        op = _match(request.group)
        assert op is not None
        number = op.value.value.data
        type = element_type_of(op.output)
        layout = stored_choice(request.group).results[0]

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            value = e.constant(number, e.vector_type(type))
            for slab in border_slabs(op, layout):
                fill_slab(e, buffers[-1], slab, value)

        return grid_kernel(request, self.unit, 1, iteration)


def _match(group: FusedOp) -> PadOp | None:
    op = group.body.block.first_op
    alone = op is not None and op.next_op is group.terminator and len(group.results) == 1
    if (
        not isinstance(op, PadOp)
        or not alone
        or not boxes_of(group)
        or not is_number(element_type_of(group.results[0]))
    ):
        return None
    return op


@dataclass(frozen=True)
class Slab:
    """A part of the border: loops over it (one stride each), from an element on."""

    start: int
    dims: tuple[LoopDim, ...]


def border_slabs(op: PadOp, layout: Layout) -> list[Slab]:
    """The border, each element once: before and after the inside along each dim of storage.

    Along the dims outside of that, a slab is as long as the inside, along those inside of it as
    long as the whole.
    """
    shape = shape_of(op.output)
    strides = layout.storage_strides(shape)
    whole: list[Range] = [(0, extent) for extent in layout.storage_shape(shape)]
    inside = list(whole)
    for place, dim in enumerate(layout.dims):
        if dim.extent is None:
            low = op.low.get_values()[dim.dim] // dim.step
            high = op.high.get_values()[dim.dim] // dim.step
            inside[place] = (low, whole[place][1] - high)
    slabs: list[Slab] = []
    for place, (begin, end) in enumerate(inside):
        for side in ((0, begin), (end, whole[place][1])):
            ranges = [*inside[:place], side, *whole[place + 1 :]]
            if all(first < last for first, last in ranges):
                slabs.append(_slab(ranges, strides))
    return slabs


def _slab(ranges: Sequence[Range], strides: Sequence[int]) -> Slab:
    start = sum(first * stride for (first, _), stride in zip(ranges, strides, strict=True))
    loops = [
        LoopDim(last - first, (stride,))
        for (first, last), stride in zip(ranges, strides, strict=True)
    ]
    return Slab(start, merged(loops) or (LoopDim(1, (1,)),))


def fill_slab(e: Emitter, buffer: Buffer, slab: Slab, value: Value) -> None:
    """Writes `value` to all elements of a slab."""
    *outer, inner = slab.dims
    if inner.strides != (1,):
        outer, inner = [*outer, inner], LoopDim(1, (1,))

    def rows(dims: Sequence[LoopDim], base: Index) -> None:
        if dims:
            step = dims[0].strides[0]
            e.loop(0, dims[0].extent, 1, lambda i: rows(dims[1:], e.add(base, e.mul(i, step))))
            return
        count = inner.extent - inner.extent % e.lanes
        e.loop(0, count, e.lanes, lambda i: buffer.store(e, value, e.add(base, i)))
        if count < inner.extent:
            mask = e.mask(inner.extent - count)
            buffer.store(e, value, e.add(base, count), mask)

    rows(outer, slab.start)
