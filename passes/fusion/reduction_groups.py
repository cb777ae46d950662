"""Reductions with the elementwise ops that compute their operands."""

from collections.abc import Iterator, Mapping

from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.execution.compute_ops import may_fuse
from braid.analysis.structure.parameter_expressions import computed_beforehand
from braid.dialects.braid.attribute_names import FUSION_GROUP
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.reduction import ReduceOp
from braid.passes.fusion.fused_group import fused_group
from braid.targets.costs.cost_source import CostSource

_MOST_MEMBERS = 256

_MOST_FLOPS = 8
"""The most operations of an op: functions need the registers for sums, and take longer than
a pass."""


def reduction_groups(
    block: Block, taken: set[Operation], anchors: Mapping[Operation, Operation], costs: CostSource
) -> Iterator[list[Operation]]:
    """Yield the groups of `block` that a kernel made for reductions computes at once, in order.

    An operand is computed where it is read, and is never stored. Ops in `taken` are in other
    groups, those in `anchors` in kernels of products, and values known at compile time are not
    recomputed.
    """
    position = {op: index for index, op in enumerate(block.ops)}
    known = computed_beforehand()

    def may_join(op: Operation, root: ReduceOp, members: set[Operation]) -> bool:
        return (
            isinstance(op, ElementwiseOp)
            and op.ROW.flops <= _MOST_FLOPS
            and op.parent is block
            and op not in taken
            and op not in members
            and op not in anchors
            and FUSION_GROUP not in op.attributes
            and may_fuse(op)
            and run_together(op, root)
            and shape_of(op.results[0]) == shape_of(root.input)
            and not known.is_known(op.results[0])
            and all(use.operation in members for result in op.results for use in result.uses)
        )

    for root in list(block.ops):
        if not isinstance(root, ReduceOp) or root in taken or FUSION_GROUP in root.attributes:
            continue
        members: set[Operation] = {root}
        waiting: list[Operation] = [root]
        while waiting and len(members) < _MOST_MEMBERS:
            for operand in waiting.pop().operands:
                op = operand.owner
                if isinstance(op, Operation) and may_join(op, root, members):
                    members.add(op)
                    waiting.append(op)
        ordered = sorted(members, key=lambda op: position[op])
        if len(ordered) > 1 and _has_kernel(ordered, root, costs):
            yield ordered


def _has_kernel(members: list[Operation], root: ReduceOp, costs: CostSource) -> bool:
    """Return whether a family made for reductions takes the group."""
    group, _ = fused_group(members)
    Rewriter.insert_op(group, InsertPoint.before(root))
    taken = costs.of(group).kernels.matches.is_made_for(group, ReduceOp)
    Rewriter.erase_op(group)
    return taken
