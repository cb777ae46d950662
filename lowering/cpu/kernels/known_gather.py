"""Gathers at known positions: paddings by reflection, edges and turns, as copies of runs.

A run is an arithmetic progression, such as a mirrored border: steps of 1 are copies by vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.dialects import arith

from braid.analysis.nests.dims import LoopDim, merged, row_major_strides
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import is_number, numpy_from_dense
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.copies.strided import copy_loops
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_MOST_RUNS = 8
"""Along a dim: more are more code than it is worth."""

_BROKEN = 1.3
"""Slowdown of a copy in pieces."""


@dataclass(frozen=True)
class KnownGatherFamily(VectorFamily):
    """Gathers of numbers at constant positions alone in their group, row-major.

    One along a dim, or a chain of them.
    """

    name: str = "known-gather"
    version: int = 2
    anchors: ClassVar = (GatherOp,)

    def match(self, group: FusedOp) -> "_KnownGather | None":
        """A chain from the operand to the result, of few runs along each dim."""
        if len(group.inputs) != 1 or len(group.outputs) != 1 or boxes_of(group):
            return None
        value = group.body.block.args[0]
        shape = shape_of(value)
        if overlap_of(group) is not None or DYNAMIC in shape or 0 in shape:
            return None
        if not is_number(element_type_of(value)):
            return None
        positions: list[Sequence[int]] = [range(extent) for extent in shape]
        for op in group.body.block.ops:
            if isinstance(op, ConstantOp) or op is group.terminator:
                continue
            known = _positions(op) if isinstance(op, GatherOp) and op.data is value else None
            if known is None:
                return None
            assert isinstance(op, GatherOp)
            value, dim = op.output, op.dim.value.data
            positions[dim] = [positions[dim][place] for place in known]
        if group.terminator.arguments[0] is not value:
            return None
        runs = tuple(tuple(_runs(along)) for along in positions)
        if not all(0 < len(along) <= _MOST_RUNS for along in runs):
            return None
        return _KnownGather(group, self.unit, runs)


@dataclass(frozen=True)
class _Run:
    """`count` positions from `first` on by `step`, for indices of the result from `begin` on."""

    begin: int
    first: int
    step: int
    count: int


@dataclass(frozen=True, eq=False)
class _KnownGather(VectorCandidate):
    """The runs of positions along each dim."""

    runs: tuple[tuple[_Run, ...], ...]

    def choices(self) -> Sequence[LayoutChoice]:
        """Row-major."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Memory traffic."""
        return _BROKEN * self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """One row of the last gathered dim, with what is inside of it, in each iteration."""
        shape, result = shape_of(self.group.inputs[0]), shape_of(self.group.outputs[0])
        strides = (row_major_strides(shape), row_major_strides(result))
        gathered = [dim for dim, runs in enumerate(self.runs) if len(runs) > 1]
        row = gathered[-1] if gathered else len(shape) - 1
        inner = prod(shape[row + 1 :])

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            point = e.coordinates(index, result[:row])
            read = [_position(e, i, runs) for i, runs in zip(point, self.runs, strict=False)]
            source = e.dot(read, strides[0][:row])
            target = e.dot(point, strides[1][:row])
            for run in self.runs[row]:
                at = (e.add(source, run.first * inner), e.add(target, run.begin * inner))
                dims = [LoopDim(run.count, (run.step * inner, inner)), LoopDim(inner, (1, 1))]
                copy_loops(e, merged(dims) or (LoopDim(1, (1, 1)),), (buffers[0], buffers[-1]), at)

        return grid_kernel(self.group, symbol, self.unit, prod(result[:row]), iteration)


def _positions(op: GatherOp) -> list[int] | None:
    """Those that are read along the dim, if they are known and one for each index of the result."""
    owner, extent = op.indices.owner, shape_of(op.data)[op.dim.value.data]
    if not isinstance(owner, ConstantOp) or len(shape_of(op.indices)) != 1:
        return None
    # As in other kernels, what is outside is brought inside.
    found = numpy_from_dense(owner.value).tolist()
    return [min(max(p + extent if p < 0 else p, 0), extent - 1) for p in found]


def _runs(positions: Sequence[int]) -> list[_Run]:
    """The runs of positions, each as long as possible from its begin on."""
    runs: list[_Run] = []
    begin = 0
    while begin < len(positions) and len(runs) <= _MOST_RUNS:
        end = begin + 1
        step = positions[end] - positions[begin] if end < len(positions) else 1
        while end < len(positions) and positions[end] - positions[end - 1] == step:
            end += 1
        step = step if end - begin > 1 else 1
        runs.append(_Run(begin, positions[begin], step, end - begin))
        begin = end
    return runs


def _position(e: Emitter, index: Index, runs: Sequence[_Run]) -> Index:
    """What is read for an index of the result."""

    def within(run: _Run) -> Index:
        return e.add(e.mul(index, run.step), run.first - run.step * run.begin)

    found = within(runs[0])
    for run in runs[1:]:
        if isinstance(index, int):
            found = within(run) if index >= run.begin else found
            continue
        is_within = e.insert(arith.CmpiOp(index, e.index(run.begin), "uge"))
        pair = (e.index(within(run)), e.index(found))
        found = e.insert(arith.SelectOp(is_within, *pair))
    return found
