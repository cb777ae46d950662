"""Bound the share of an operand that an op reads: all of it, except for gathers and slices."""

import math

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from braid.analysis.tiles.op_tiles import op_tile
from braid.dialects.braid.base import IndirectOp, shape_of
from braid.dialects.braid.boxes import count, whole
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import GroupOp, YieldOp
from braid.dialects.braid.scalar import Load, walk


def read_share(op: Operation, operand: SSAValue) -> float:
    """Return the part of `operand`'s elements that `op` reads at most, between 0 and 1.

    A group reads the operands of its ops. A strided read of a box counts as the whole box, since
    memory transfers whole cache lines. It is 1 for open dims, and for values that are no tensors.
    """
    return read_shares(op)[operand] if isinstance(op, GroupOp) else _share(op, operand)


def read_shares(op: Operation) -> dict[SSAValue, float]:
    """Return the `read_share` of each operand, for all of a group in one walk."""
    if not isinstance(op, GroupOp):
        return {operand: _share(op, operand) for operand in dict.fromkeys(op.operands)}
    shares: dict[SSAValue, list[float]] = {operand: [] for operand in op.inputs}
    for argument, operand in zip(op.body.block.args, op.inputs, strict=True):
        shares[operand] += [read_share(use.operation, argument) for use in argument.uses]
    return {operand: min(sum(own), 1.0) for operand, own in shares.items()}


def _share(op: Operation, operand: SSAValue) -> float:
    size = _elements(operand)
    made = [_elements(result) for result in op.results]
    # Only values larger than the result can be read in part, and asking costs time.
    if isinstance(op, YieldOp) or not size or len(made) != 1 or not made[0] or size <= made[0]:
        return 1.0
    if isinstance(op, IndirectOp):
        return min(_indirect_reads(op, operand) / size, 1.0)
    tile = op_tile(op, whole(shape_of(op.results[0])))
    if tile is None:
        return 1.0
    boxes = [b for b, v in zip(tile.operands, op.operands, strict=True) if v is operand]
    return min(sum(0 if box is None else count(box) for box in boxes) / size, 1.0)


def _indirect_reads(op: IndirectOp, operand: SSAValue) -> int:
    """Return an element for each `Load` of it in each iteration; the whole tensor if other ops read
    it, too.
    """
    numbers = {number for number, value in enumerate(op.operands) if value is operand}
    reads = 0
    for stage in op.structure().stages:
        if any(getattr(read.source, "index", None) in numbers for read in stage.reads):
            return _elements(operand)
        loads = [n for n in walk(stage.body) if isinstance(n, Load) and n.operand in numbers]
        reads += len(loads) * math.prod(stage.extents)
    return reads


def _elements(value: SSAValue) -> int:
    """Return the number of elements; 0 if there are none, or if the number is
    unknown."""
    if not isinstance(value.type, TensorType) or DYNAMIC in (shape := shape_of(value)):
        return 0
    return math.prod(shape)
