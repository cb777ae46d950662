"""Cost of an op from what it must move and compute, and the rates of a backend.

The roofline model of S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual
Performance Model", 2009: the larger of the time to move and the time to compute.
"""

import math
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from braid.analysis.storage.tensor_storage import logical_bytes
from braid.dialects.braid.base import AnyTensor, IndirectOp, StructuredOp
from braid.dialects.braid.elementwise import TABLE
from braid.dialects.braid.regions import GroupOp
from braid.dialects.braid.scalar import Apply, walk
from braid.dialects.braid.structure import Stage
from braid.targets.machines.target import BackendDescription

_FLOPS = {row.name: row.flops for row in TABLE}


@dataclass(frozen=True)
class Roofline:
    """Estimates on one core of `backend`."""

    backend: BackendDescription

    def of_op(self, op: Operation, resource: str) -> float:
        """Amount of `resource` (`seconds`, `bytes`, `flops`) that one run of `op` takes."""
        if not op.results:
            return 0.0
        return self.amount(resource, moved_bytes(op), flops(op))

    def amount(self, resource: str, bytes: int, flops: int) -> float:
        """`resource` of a kernel that moves and computes this much; 0 if it has neither."""
        match resource:
            case "seconds":
                moving = bytes / self.backend.rate("bytes")
                return self.backend.launch_seconds + max(moving, flops / self.backend.rate("flops"))
            case "bytes":
                return float(bytes)
            case "flops":
                return float(flops)
            case _:
                return 0.0


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


def stage_flops(stage: Stage) -> int:
    """Scalar operations of one stage, weighted in the same way."""
    per_point = sum(
        _FLOPS.get(node.operation, 1) for node in walk(stage.body) if isinstance(node, Apply)
    )
    per_point += stage.combine is not None
    return per_point * math.prod(max(extent, 1) for extent in stage.extents)
