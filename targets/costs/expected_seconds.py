"""Seconds that ops are expected to take in one run of the function that they are in."""

from xdsl.dialects import scf
from xdsl.ir import Operation

from braid.analysis.execution.execution_counts import ExecutionCounts
from braid.targets.costs.op_seconds import OpSeconds, measured_seconds, op_seconds


def expected_seconds(counts: ExecutionCounts) -> OpSeconds:
    """`op_seconds`, each op weighted with its expected executions.

    Control flow that was not measured itself takes as long as the ops in its regions together.
    """

    def seconds(op: Operation) -> float:
        is_control_flow = isinstance(op, scf.IfOp | scf.ForOp | scf.WhileOp)
        if is_control_flow and measured_seconds(op) is None:
            blocks = (block for region in op.regions for block in region.blocks)
            return sum(seconds(inner) for block in blocks for inner in block.ops)
        runs = 1.0 if op.parent is None else counts.of_block(op.parent)
        return runs * op_seconds(op)

    return seconds
