"""Count the scalar operations of ops."""

import math

from xdsl.ir import Operation

from braid.dialects.braid.base import IndirectOp, StructuredOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import TABLE
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import GroupOp
from braid.dialects.braid.scalar import Apply, walk
from braid.dialects.braid.structure import Stage
from braid.dialects.braid.transposed_convolution import ConvTransposeOp

MATRIX_OPS = (ConvOp, ConvTransposeOp, MatmulOp)
"""The ops that a matrix unit computes."""

_FLOPS = {row.name: row.flops for row in TABLE}


def flops(op: Operation) -> int:
    """Return the scalar operations of `op`, weighted by their cost relative to an addition."""
    if isinstance(op, GroupOp):
        return sum(flops(inner) for inner in op.body.block.ops)
    if isinstance(op, StructuredOp | IndirectOp):
        return sum(stage_flops(stage) for stage in op.structure().stages)
    return 0


def stage_flops(stage: Stage) -> int:
    """Return the scalar operations of one stage, weighted in the same way."""
    per_point = sum(
        _FLOPS.get(node.operation, 1) for node in walk(stage.body) if isinstance(node, Apply)
    )
    per_point += stage.combine is not None
    return per_point * math.prod(max(extent, 1) for extent in stage.extents)
