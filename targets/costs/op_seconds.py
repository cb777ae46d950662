"""Seconds of one run of an op, as declared or estimated from its structure.

The estimate is a roofline (S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful
visual performance model", 2009) with the rates of one CPU core: for choices among ops of one
graph, where only ratios matter.
"""

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation

from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import SECONDS
from braid.dialects.braid.base import IndirectOp, StructuredOp
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.scalar import Apply, walk
from braid.dialects.braid.structure import Stage

OpSeconds: TypeAlias = Callable[[Operation], float]
"""Answers how long one run of an op takes."""


FLOPS_PER_SECOND = 50e9
BYTES_PER_SECOND = 10e9


def op_seconds(op: Operation) -> float:
    """What `op` declares, or a profile measured, or the estimate; 0 for views and weights.

    An op with regions takes as long as all that is in them. Raises UnsupportedError for open
    dims.
    """
    if is_leaf(op) or is_view(op):
        return 0.0
    if isinstance(op, OpaqueOp) and (declared := op.declared_cost) is not None:
        if isinstance(declared, Mapping):
            return declared.get("seconds", sum(declared.values()))
        return declared
    if (measured := measured_seconds(op)) is not None:
        return measured
    if op.regions:
        blocks = (block for region in op.regions for block in region.blocks)
        return sum(op_seconds(inner) for block in blocks for inner in block.ops)
    moved = sum(value_bytes(value) for value in (*op.operands, *op.results))
    return max(_flops(op) / FLOPS_PER_SECOND, moved / BYTES_PER_SECOND)


def measured_seconds(op: Operation) -> float | None:
    """Seconds of one run as `annotate-profile` noted them, None where it did not."""
    attribute = op.attributes.get(SECONDS)
    return attribute.value.data if isinstance(attribute, FloatAttr) else None


def _flops(op: Operation) -> float:
    if not isinstance(op, StructuredOp | IndirectOp):
        return 0.0
    return sum(_stage_flops(stage) for stage in op.structure().stages)


def _stage_flops(stage: Stage) -> float:
    applied = (node.operation for node in walk(stage.body) if isinstance(node, Apply))
    each = sum(ELEMENTWISE[name].ROW.flops for name in applied) + (stage.combine is not None)
    return float(math.prod(stage.extents)) * each
