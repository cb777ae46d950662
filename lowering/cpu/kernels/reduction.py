"""Reductions along any dims, with elementwise ops before and after them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation, SSAValue

from braid.analysis.nests.dims import LoopDim, merged, strides_along
from braid.analysis.nests.pointwise import Pointwise, points_of
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import results_alike
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.kernels.pointwise.reduction_loops import ReductionLoops, ReductionNest
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.math.elementwise_table import emitter_of
from braid.lowering.emit.points import emittable
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_WORD = 4
"""Bytes of numbers that fill vectors: LLVM makes more of loops over narrower ones."""

_EXTREMUM_FLOPS = 3
"""Operations of a maximum of floats, which NaN goes through."""


@dataclass(frozen=True)
class ReductionFamily(VectorFamily):
    """One `braid.reduce` along any dims, with elementwise ops on what it reads and on its result.

    Of f32, f64, i32, i64, and what is made of other types where it is read. Layouts: all that the
    generic lowering offers in which the innermost dim of what is read is contiguous.
    """

    name: str = "reduction"
    version: int = 4
    anchors: ClassVar = (ReduceOp,)

    def match(self, group: FusedOp) -> "_Reduction | None":
        """One reduction that all results are made of."""
        ops = [op for op in group.body.block.ops if isinstance(op, ReduceOp)]
        if len(ops) != 1:
            return None
        op = ops[0]
        shape, kind = shape_of(op.input), element_type_of(op.output)
        values = (*group.inputs, *group.outputs)
        if any(DYNAMIC in shape_of(value) for value in values) or bytes_of(kind) < _WORD:
            return None
        before, after = _parts(group, op)
        reads = emittable(points_of(before, [op.input], shape))
        points = emittable(points_of(after, tuple(group.terminator.arguments), shape_of(op.output)))
        if reads is None or points is None or not reads.leaves:
            return None
        if not _is_self_contained(points, op, op.output) or not _is_self_contained(reads, op):
            return None
        if emitter_of(op.kind.data, [kind] * 2, kind) is None:
            return None
        if emitter_of("cast", [element_type_of(op.input)], kind) is None:
            return None
        candidate = _Reduction(group, self.unit, op, reads, points)
        return candidate if candidate.layouts else None


@dataclass(frozen=True, eq=False)
class _Reduction(VectorCandidate):
    """`reads` are the elementwise ops on what is reduced, `points` those on the result."""

    op: ReduceOp
    reads: Pointwise
    points: Pointwise

    def choices(self) -> Sequence[LayoutChoice]:
        """Row-major first."""
        return [c for c in flexible_choices(self.group) if self._nest(c) is not None]

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous."""
        return results_alike(choice) and self._nest(choice) is not None

    def seconds(self, choice: LayoutChoice) -> float:
        """The larger of arithmetic and memory traffic."""
        kind = element_type_of(self.op.output)
        is_extremum = isinstance(kind, AnyFloat) and self.op.kind.data in ("maximum", "minimum")
        steps = self.reads.flops + (_EXTREMUM_FLOPS if is_extremum else 1)
        nest = self._nest(choice)
        assert nest is not None
        elements = math.prod(self.reads.shape) / nest.used_lanes(self.unit.lanes)
        arithmetic = steps * elements * (bytes_of(kind) / _WORD) / (self.unit.flops / 2)
        return max(arithmetic, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """A block of neighbouring results per grid iteration."""
        nest = self._nest(stored_choice(self.group))
        assert nest is not None, "the family was asked for layouts it did not offer"
        loops = ReductionLoops(self.op, self.reads, self.points, nest, self.unit)
        return grid_kernel(self.group, symbol, self.unit, loops.grid, loops.iteration)

    def _nest(self, choice: LayoutChoice) -> ReductionNest | None:
        """The merged loop dims, the innermost one contiguous; None in layouts that have none."""
        shape, kept = self.reads.shape, self.points.shape
        leaves = [(shape_of(leaf), choice.operands[leaf.index]) for leaf in self.reads.leaves]
        whole = [layout for extents, layout in leaves if extents == shape]
        order = whole[0] if whole else Layout.row_major(len(shape))
        if any(shape[dim] % order.block(dim) for dim in range(order.rank)):
            return None
        leaves += [(shape_of(leaf), choice.operands[leaf.index]) for leaf in self.points.leaves]
        leaves += [(kept, layout) for layout in choice.results]
        strides = [strides_along(extents, layout, order) for extents, layout in leaves]
        known = [each for each in strides if each is not None]
        if len(known) < len(strides):
            return None
        columns = zip(*known, strict=True)
        extents = order.storage_shape(shape)
        is_reduced = [target.dim in self.op.dims.get_values() for target in order.dims]
        dims = [LoopDim(e, tuple(c)) for e, c in zip(extents, columns, strict=True)]
        kept, reduced = (
            merged([dim for dim, own in zip(dims, is_reduced, strict=True) if own == wanted])
            for wanted in (False, True)
        )
        return ReductionNest.of(kept, reduced, len(known), len(self.reads.leaves))


def _parts(group: FusedOp, op: ReduceOp) -> tuple[list[Operation], list[Operation]]:
    """The ops that make what `op` reads, and the rest without it; constants where they are read."""
    wanted = {op.input}
    before: list[Operation] = []
    for other in reversed(list(group.body.block.ops)):
        if wanted.intersection(other.results):
            before.insert(0, other)
            wanted.update(other.operands)
    after = [
        other
        for other in group.body.block.ops
        if other not in (op, group.terminator)
        and (other not in before or isinstance(other, ConstantOp))
    ]
    return before, after


def _is_self_contained(points: Pointwise, op: ReduceOp, *known: SSAValue) -> bool:
    """Whether the ops read leaves, what they make, and what is `known`, and results are made."""
    made = {result for other in points.ops for result in other.results}
    read = {operand for other in points.ops for operand in other.operands}
    return all(
        value in made or value in points.leaves or value in known
        for value in (*read, *points.results)
    )
