"""Pooling: vectors run over channels or along lines."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import BlockArgument

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Value
from braid.lowering.cpu.kernels.pointwise.points import pointwise
from braid.lowering.cpu.kernels.windows.family import WindowFamily, WindowMatch
from braid.lowering.cpu.kernels.windows.lines import lines_schedule
from braid.targets.kernels.kernel_family import Schedule

_PART_OF_PEAK = 1 / 4
"""No step of a window is a multiply-add, and every one needs a load."""


@dataclass(frozen=True)
class PoolFamily(WindowFamily):
    """`braid.pool` of f32 in two dims without padding, with an elementwise epilogue.

    Layouts: channels last, in blocks of a vector, or first for strides of at most 2.
    """

    name: str = "pool"

    def match(self, group: FusedOp) -> WindowMatch | None:
        """One pooling of a block argument, the rest elementwise on its result."""
        pools = [op for op in group.body.block.ops if isinstance(op, PoolOp)]
        if len(pools) != 1:
            return None
        op, x = pools[0], pools[0].input
        if not isinstance(x, BlockArgument):
            return None
        if element_type_of(x) != Float32Type() or len(shape_of(x)) != 4 or op.windows.is_padded:
            return None
        points = pointwise(group, op)
        if points is None or min(shape_of(x)) == 0:
            return None
        combine = _maximum if op.combine == "maximum" else _add
        return WindowMatch(op, x, None, points, float(op.padding_value), combine)

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Neighbouring outputs and channel vectors of a tile."""
        yield self.default_schedule(group)
        for columns in (1, 2, 8):
            yield {"columns": columns, "vectors": 1}
            yield {"columns": columns, "vectors": 2}

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Four outputs share the loads of overlapping windows."""
        width = self.matched(group).points.shape[3]
        if stored_choice(group).results[0].is_row_major:
            return lines_schedule(width, self.unit.lanes)
        return {"columns": min(4, width), "vectors": 1}

    def arithmetic_seconds(self, match: WindowMatch, choice: LayoutChoice) -> float:
        """A vector operation for every step."""
        return match.steps / (self.unit.flops * _PART_OF_PEAK)


def _maximum(e: Emitter, largest: Value, x: Value, weight: Value | None) -> Value:
    return e.insert(arith.MaximumfOp(largest, x))


def _add(e: Emitter, sum: Value, x: Value, weight: Value | None) -> Value:
    return e.insert(arith.AddfOp(sum, x))
