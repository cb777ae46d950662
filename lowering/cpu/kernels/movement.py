"""Copies that permute elements: reorders between layouts, transposes, channel shuffles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.ir import SSAValue

from braid.analysis.nests.dims import LoopDim, has_elements
from braid.analysis.nests.permutation import Movement, movement, movement_nest
from braid.analysis.nests.pointwise import ExtentsOf, Pointwise, PointwiseNest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import AnyTensor, shape_of
from braid.dialects.braid.dtypes import is_number
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.copies.transpose import TransposeLoops
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, SizedFamily
from braid.lowering.cpu.kernels.pointwise.loops import (
    LoopSchedule,
    PointwiseLoops,
)
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.support.sizes.expression import Extent
from braid.targets.kernels.kernel_family import Kernel

_CHUNK = 64
"""Positions of one grid iteration along the innermost dim of the source: more were slower."""

_TURNING = 1.3
"""Slowdown of a copy that turns the innermost dim, measured in the cache."""

_TURNED = {2: "ba", 3: "acb", 4: "acdb", 5: "acdeb"}
"""The other layout that is offered, by rank: columns or channels are innermost in it."""

Loops: TypeAlias = PointwiseLoops | TransposeLoops


@dataclass(frozen=True)
class MovementFamily(SizedFamily):
    """A chain of `braid.reorder`, `braid.transpose` and `braid.reshape` alone in its group.

    Layouts: a reorder has the layouts of its types; other ops have row-major, column-major or
    channels-last layouts on either side, if whole blocks allow it.
    """

    name: str = "movement"
    version: int = 3
    anchors: ClassVar = (ReorderOp, TransposeOp, ReshapeOp)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Copy | None":
        """Match a chain of movements of any extents, in at least one pair of layouts."""
        moved = movement(group, extents_of)
        if moved is None:
            return None
        candidate = Copy(group, self.unit, moved)
        return candidate if candidate.layouts else None

    def reorder_seconds(self, tensor: AnyTensor, source: Layout, target: Layout) -> float | None:
        """See `KernelFamily`."""
        shape = tensor.get_shape()
        if not is_number(tensor.element_type) or not shape or not has_elements(shape):
            return None
        nest = movement_nest(Movement.of(shape), source, target)
        if nest is None:
            return None
        moved = storage_bytes(tensor, source) + storage_bytes(tensor, target)
        return _factor(nest) * moving_seconds(moved, self.unit)


@dataclass(frozen=True, eq=False)
class Copy(ScheduledCandidate[LoopSchedule]):
    """The movement of a group."""

    moved: Movement

    def choices(self) -> Sequence[LayoutChoice]:
        """Return all pairs of layouts of operand and result."""
        return [choice for choice in _candidates(self.group) if self._nest(choice)]

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """Return whether there are loops for these layouts."""
        return self._nest(choice) is not None

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous on either side."""
        nest = self._nest(choice)
        if nest is None:
            return False
        return nest[-1].strides[1] == 1 and any(dim.strides[0] == 1 for dim in nest)

    def space(self, level: int) -> Iterator[LoopSchedule]:
        """Return the vectors per iteration of a plain copy; a transpose has nothing to choose."""
        nest = self._nest(stored_choice(self.group))
        levels = {0: (2,), 1: (1, 4), 2: (8,)} if nest and _is_plain(nest) else {0: (2,)}
        for unroll in levels.get(level, ()):
            yield LoopSchedule(unroll)

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of its memory traffic, more where the innermost dim is turned."""
        nest = self._nest(choice)
        assert nest is not None, "the family was asked for layouts it did not offer"
        return _factor(nest) * self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: LoopSchedule) -> Kernel:
        """Return the outer dims, and pieces of the innermost one, in the grid."""
        nest = self._nest(stored_choice(self.group))
        assert nest is not None, "the family was asked for layouts it did not offer"
        loops = self._loops(nest, schedule.unroll)
        return grid_kernel(self.group, symbol, self.unit, loops.grid, loops.iteration)

    def _nest(self, choice: LayoutChoice) -> tuple[LoopDim[Extent], ...] | None:
        return movement_nest(self.moved, choice.operands[0], choice.results[0])

    def _loops(self, nest: Sequence[LoopDim[Extent]], unroll: int) -> Loops:
        lanes = self.unit.lanes
        if _is_plain(nest):
            argument = self.group.body.block.args[0]
            copied = Pointwise((), (argument,), (argument,), shape_of(argument))
            return PointwiseLoops(PointwiseNest(copied, tuple(nest), (0, 0)), self.unit, unroll)
        lines = next(dim for dim in nest if dim.strides[0] == 1)
        outer = tuple(dim for dim in nest[:-1] if dim is not lines)
        return TransposeLoops(outer, lines, nest[-1], lanes, max(lanes, _CHUNK))


def _factor(nest: Sequence[LoopDim[Extent]]) -> float:
    """Return how much longer than a plain copy it takes."""
    return 1.0 if _is_plain(nest) else _TURNING


def _is_plain(nest: Sequence[LoopDim[Extent]]) -> bool:
    """Return whether neighbours stay neighbours."""
    return nest[-1].strides == (1, 1)


def _candidates(group: FusedOp) -> list[LayoutChoice]:
    """Return layouts: those of a reorder are fixed, other movements may match their neighbours'."""
    if any(isinstance(op, ReorderOp) for op in group.body.block.ops):
        return [stored_choice(group)]
    sources, targets = _layouts(group.inputs[0]), _layouts(group.outputs[0])
    return [LayoutChoice((source,), (target,)) for source in sources for target in targets]


def _layouts(value: SSAValue) -> list[Layout]:
    rank = len(shape_of(value))
    tags = [_TURNED[rank]] if rank in _TURNED else []
    return [Layout.row_major(rank), *map(Layout.parse, tags)]
