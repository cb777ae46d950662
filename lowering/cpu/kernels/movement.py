"""Copies that permute elements: reorders between layouts, transposes, channel shuffles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.shaping import TransposeOp
from braid.lowering.cpu.kernels.copies.permutation import Movement, movement_nest
from braid.lowering.cpu.kernels.copies.transpose import TransposeLoops
from braid.lowering.cpu.kernels.emit.elementwise_table import is_number
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel
from braid.lowering.cpu.kernels.groups.loop_dims import LoopDim
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds, stored_bytes
from braid.lowering.cpu.kernels.groups.vector_family import VectorFamily
from braid.lowering.cpu.kernels.pointwise.loops import ElementwiseLoops
from braid.lowering.cpu.kernels.pointwise.points import Pointwise
from braid.targets.kernels.kernel_family import Kernel, KernelRequest, Schedule

_CHUNK = 64
"""Positions of one grid iteration along the innermost dim of the source: more were slower."""

_TURNING = 1.3
"""Slowdown of a copy that turns the innermost dim, measured in the cache."""

_TURNED = {2: "ba", 3: "acb", 4: "acdb", 5: "acdeb"}
"""The other layout that is offered, by rank: columns or channels are innermost in it."""

Loops: TypeAlias = ElementwiseLoops | TransposeLoops


@dataclass(frozen=True)
class MovementFamily(VectorFamily):
    """A chain of `braid.reorder`, `braid.transpose` and `braid.reshape` alone in its group.

    Layouts: a reorder's as typed; others row-major, column-major or channels last on either side,
    where whole blocks allow it.
    """

    name: str = "movement"

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """All pairs of layouts of operand and result."""
        movement = _match(group)
        if movement is None:
            return ()
        return [choice for choice in _candidates(group) if _nest(group, movement, choice)]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous on either side."""
        movement = _match(group)
        nest = None if movement is None else _nest(group, movement, choice)
        if nest is None:
            return False
        return nest[-1].strides[1] == 1 and any(dim.strides[0] == 1 for dim in nest)

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Vectors per iteration of a plain copy; a transpose has nothing to choose."""
        for unroll in (2, 1, 4):
            yield {"unroll": unroll}

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Two vectors."""
        return {"unroll": 2}

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Memory traffic, more where the innermost dim is turned."""
        movement = _match(group)
        nest = None if movement is None else _nest(group, movement, choice)
        assert nest is not None
        factor = 1.0 if nest[-1].strides == (1, 1) else _TURNING
        return factor * moving_seconds(stored_bytes(group, choice), self.unit)

    def emit(self, request: KernelRequest) -> Kernel:
        """The outer dims, and pieces of the innermost one, in the grid."""
        group = request.group
        movement = _match(group)
        assert movement is not None
        nest = _nest(group, movement, stored_choice(group))
        assert nest is not None, "the family was asked for layouts it did not offer"
        unroll = self.schedule_of(request)["unroll"]
        loops = self._loops(group, nest, unroll)
        return grid_kernel(request, self.unit, loops.grid, loops.iteration)

    def _loops(self, group: FusedOp, nest: Sequence[LoopDim], unroll: int) -> Loops:
        lanes = self.unit.lanes
        if nest[-1].strides == (1, 1):
            argument = group.body.block.args[0]
            copied = Pointwise((), (argument,), (argument,), shape_of(argument))
            return ElementwiseLoops(copied, tuple(nest), (), lanes, unroll)
        lines = next(dim for dim in nest if dim.strides[0] == 1)
        outer = tuple(dim for dim in nest[:-1] if dim is not lines)
        return TransposeLoops(outer, lines, nest[-1], lanes, max(lanes, _CHUNK))


def _match(group: FusedOp) -> Movement | None:
    """What the ops of the group do to the index, if they are one chain from operand to result."""
    if len(group.inputs) != 1 or len(group.outputs) != 1:
        return None
    value = group.body.block.args[0]
    shape = shape_of(value)
    if not is_number(element_type_of(value)) or min(shape, default=0) < 1:
        return None
    movement: Movement | None = Movement.of(shape)
    for op in group.body.block.ops:
        if op is group.terminator:
            break
        if not isinstance(op, ReorderOp | TransposeOp | ReshapeOp) or op.input is not value:
            return None
        movement = _moved(movement, op)
        if movement is None:
            return None
        value = op.output
    is_chain = group.terminator.arguments[0] is value and not isinstance(value, BlockArgument)
    return movement if is_chain else None


def _moved(movement: Movement, op: Operation) -> Movement | None:
    if isinstance(op, TransposeOp):
        return movement.transposed(op.permutation.get_values())
    if isinstance(op, ReshapeOp):
        return movement.reshaped(shape_of(op.output))
    return movement


def _candidates(group: FusedOp) -> list[LayoutChoice]:
    """A reorder's layouts are its meaning; what else moves elements may meet its neighbours'."""
    if any(isinstance(op, ReorderOp) for op in group.body.block.ops):
        return [stored_choice(group)]
    sources, targets = _layouts(group.inputs[0]), _layouts(group.outputs[0])
    return [LayoutChoice((source,), (target,)) for source in sources for target in targets]


def _layouts(value: SSAValue) -> list[Layout]:
    rank = len(shape_of(value))
    tags = [_TURNED[rank]] if rank in _TURNED else []
    return [Layout.row_major(rank), *map(Layout.parse, tags)]


def _nest(group: FusedOp, movement: Movement, choice: LayoutChoice) -> tuple[LoopDim, ...] | None:
    shape = shape_of(group.inputs[0])
    return movement_nest(movement, shape, choice.operands[0], choice.results[0])
