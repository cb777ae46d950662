"""What an op moves and computes: bytes and scalar operations, from its types and structure."""

import math
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from braid.analysis.storage.tensor_storage import logical_bytes
from braid.dialects.braid.base import AnyTensor, IndirectOp, StructuredOp, element_type_of
from braid.dialects.braid.elementwise import TABLE
from braid.dialects.braid.regions import GroupOp
from braid.dialects.braid.scalar import Apply, walk
from braid.dialects.braid.structure import Stage

ESTIMATED = ("seconds", "bytes", "flops")
"""The resources of which the roofline says something for every op."""

_FLOPS = {row.name: row.flops for row in TABLE}


def moved_bytes(op: Operation) -> int:
    """Bytes of all operands and results of `op`; open dims count as 1."""
    types = [value.type for value in (*op.operands, *op.results)]
    return sum(
        logical_bytes(cast(AnyTensor, type)) for type in types if isinstance(type, TensorType)
    )


def flops(op: Operation) -> int:
    """Scalar operations of `op`, weighted by their cost relative to an addition."""
    if isinstance(op, GroupOp):
        return sum(flops(inner) for inner in op.body.block.ops)
    if isinstance(op, StructuredOp | IndirectOp):
        return sum(stage_flops(stage) for stage in op.structure().stages)
    return 0


def computed_type(op: Operation) -> str:
    """What `op` computes with, such as `f32`: the elements of its first operand, or result."""
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TensorType):
            return str(element_type_of(value))
    return "f32"


def stage_flops(stage: Stage) -> int:
    """Scalar operations of one stage, weighted in the same way."""
    per_point = sum(
        _FLOPS.get(node.operation, 1) for node in walk(stage.body) if isinstance(node, Apply)
    )
    per_point += stage.combine is not None
    return per_point * math.prod(max(extent, 1) for extent in stage.extents)
