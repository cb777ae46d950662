"""Pooling: vectors run over channels or along lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import BlockArgument

from braid.analysis.kernel_family import Kernel, KernelRequest, LayoutChoice, Schedule
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.choices import (
    feature_choice,
    results_alike,
    typed_choice,
)
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Value
from braid.lowering.cpu.kernels.emit.function import grid_kernel
from braid.lowering.cpu.kernels.emit.machine import VectorUnit, host_vector_unit
from braid.lowering.cpu.kernels.pointwise import Pointwise, pointwise
from braid.lowering.cpu.kernels.traffic import moving_seconds, stored_bytes
from braid.lowering.cpu.kernels.window_lines import lines_schedule, window_kernel
from braid.lowering.cpu.kernels.windows import (
    WindowProblem,
    stored_tensors,
    used_lanes,
    window_layouts,
)


@dataclass(frozen=True)
class _Match:
    op: PoolOp
    input: BlockArgument
    points: Pointwise


@dataclass(frozen=True)
class PoolFamily:
    """`braid.pool` of f32 in two dims without padding, with an elementwise epilogue.

    Layouts: channels last, in blocks of a vector, or first for strides of at most 2.
    """

    unit: VectorUnit = field(default_factory=host_vector_unit)
    name: str = "pool"

    def accepts(self, group: FusedOp) -> bool:
        """One pooling of a block argument, the rest elementwise on its result."""
        return _match(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """Channels last, then in blocks, then first."""
        match = _match(group)
        if match is None:
            return ()
        layouts = window_layouts(match.op.windows, match.points.shape[1], self.unit.lanes)
        choices = [feature_choice(group, {match.input.index: layout}, layout) for layout in layouts]
        return [c for c in choices if stored_tensors(match.input, match.points, c) is not None]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous."""
        match = _match(group)
        if match is None:
            return False
        return (
            results_alike(choice) and stored_tensors(match.input, match.points, choice) is not None
        )

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Neighbouring outputs and channel vectors of a tile."""
        yield self.default_schedule(group)
        for columns in (1, 2, 8):
            yield {"columns": columns, "vectors": 1}
            yield {"columns": columns, "vectors": 2}

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Four outputs share the loads of overlapping windows."""
        match = _match(group)
        assert match is not None
        width = match.points.shape[3]
        if typed_choice(group).results[0].is_row_major:
            return lines_schedule(width, self.unit.lanes)
        return {"columns": min(4, width), "vectors": 1}

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """The larger of vector operations and memory traffic."""
        match = _match(group)
        assert match is not None
        batch, channels, height, width = match.points.shape
        kh, kw = match.op.windows.size
        operations = batch * channels * height * width * kh * kw
        arithmetic = operations / (self.unit.flops / 4)
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
            weight=None,
            neutral=float(match.op.padding_value),
            combine=_maximum if match.op.combine == "maximum" else _add,
        )
        kernel = window_kernel(problem, schedule)
        return grid_kernel(request, self.unit, kernel.grid, kernel.iteration, problem.in_place)


def _match(group: FusedOp) -> _Match | None:
    pools = [op for op in group.body.block.ops if isinstance(op, PoolOp)]
    if len(pools) != 1 or not isinstance(pools[0].input, BlockArgument):
        return None
    op, x = pools[0], pools[0].input
    assert isinstance(x, BlockArgument)
    if element_type_of(x) != Float32Type() or len(shape_of(x)) != 4 or op.windows.is_padded:
        return None
    points = pointwise(group, op)
    return _Match(op, x, points) if points is not None and min(shape_of(x)) > 0 else None


def _maximum(e: Emitter, largest: Value, x: Value, weight: Value | None) -> Value:
    return e.insert(arith.MaximumfOp(largest, x))


def _add(e: Emitter, sum: Value, x: Value, weight: Value | None) -> Value:
    return e.insert(arith.AddfOp(sum, x))
