"""Groups that only join, pad or cut tensors, and where their operands could lie instead."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.movement import ConcatOp, PadOp, SliceOp
from braid.dialects.braid.regions import FusedOp

Index = tuple[int, ...]


@dataclass(frozen=True)
class Box:
    """A part of a tensor: from the element at `start` on, every `steps`-th along each dim."""

    value: SSAValue
    start: Index
    steps: Index

    def strides(self, outer: Sequence[int]) -> Index:
        """Return the strides of the box, by those of the tensor that it is a part of."""
        dims = layout_of(self.value.type).dims
        return tuple(
            stride * self.steps[stored.dim] for stored, stride in zip(dims, outer, strict=True)
        )

    def offset(self, outer: Sequence[int]) -> int:
        """Return the elements of the tensor before the first one of the box."""
        total = 0
        for stored, stride in zip(layout_of(self.value.type).dims, outer, strict=True):
            index = self.start[stored.dim] // stored.step
            total += stride * (index if stored.extent is None else index % stored.extent)
        return total


@dataclass(frozen=True)
class Candidate:
    """A group that would be spared: `boxes` are parts of `whole`, by number of the operand.

    A slice has its result as the only box, and its operand as the whole.
    """

    group: FusedOp
    op: Operation
    whole: SSAValue
    boxes: dict[int, Box]

    @property
    def is_view(self) -> bool:
        """Return whether the box is the result."""
        return isinstance(self.op, SliceOp)


def candidate_of(group: FusedOp) -> Candidate | None:
    """Return the concatenation, padding or slice of `group`; None if it does more, or stores its
    tensors differently.
    """
    op = group.body.block.first_op
    if op is None or op.next_op is not group.terminator or len(group.results) != 1:
        return None
    if tuple(group.terminator.arguments) != tuple(op.results):
        return None
    if len(set(op.operands)) != len(op.operands):
        return None
    starts = _starts(op)
    values = [*group.operands, *group.results]
    if starts is None or len({layout_of(value.type) for value in values}) != 1:
        return None
    if any(DYNAMIC in shape_of(value) for value in values):
        return None
    result, ones = group.results[0], (1,) * len(shape_of(group.results[0]))
    if isinstance(op, SliceOp):
        boxes = {0: Box(result, starts[0], tuple(op.strides.get_values()))}
        whole = group.operands[0]
    else:
        arguments = [o for o in op.operands if isinstance(o, BlockArgument)]
        boxes = {
            argument.index: Box(group.operands[argument.index], start, ones)
            for argument, start in zip(arguments, starts, strict=True)
        }
        whole = result
    layout = layout_of(whole.type)
    return Candidate(group, op, whole, boxes) if _aligned(layout, whole, boxes) else None


def _starts(op: Operation) -> list[Index] | None:
    """Return where each box begins in the whole."""
    if isinstance(op, SliceOp):
        forward = min(op.strides.get_values(), default=1) > 0
        return [tuple(op.offsets.get_values())] if forward else None
    if isinstance(op, PadOp):
        return [tuple(op.low.get_values())]
    if not isinstance(op, ConcatOp):
        return None
    dim, position, starts = op.dim.value.data, 0, list[Index]()
    for operand in op.operands:
        shape = shape_of(operand)
        starts.append(tuple(position if d == dim else 0 for d in range(len(shape))))
        position += shape[dim]
    return starts


def _aligned(layout: Layout, whole: SSAValue, boxes: dict[int, Box]) -> bool:
    """Return whether boxes hold whole blocks of the layout, without a padded tail."""
    extents = shape_of(whole)
    for dim in range(layout.rank):
        block = layout.block(dim)
        for box in boxes.values():
            pieces = (extents[dim], shape_of(box.value)[dim], box.start[dim])
            if block != 1 and (any(piece % block for piece in pieces) or box.steps[dim] != 1):
                return False
    return True
