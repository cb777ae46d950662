"""The time that the ops of a block take on inter-op streams, as a scheduling problem."""

from math import inf

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from braid.analysis.execution.compute_ops import is_compute
from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.regions import FusedOp
from braid.passes.order.block_graph import BlockGraph
from braid.solvers.ordering.processors import ProcessorProblem
from braid.targets.costs.device_costs import DeviceCosts


def inter_op_problem(block: BlockGraph, costs: DeviceCosts, streams: int) -> ProcessorProblem:
    """Return the problem of scheduling `block` on `streams` of the pool of a device.

    A kernel runs on one stream, or its iterations on all. Views and scalars take no time; what else
    is not a kernel, such as control flow, runs alone. Raises UnsupportedError for open dims.
    """
    alone: list[float] = []
    together: list[float] = []
    for op in block.ops:
        if isinstance(op, FusedOp) or is_compute(op):
            cost = costs.cost(op)
            start = costs.start_of(cost)
            alone.append(start + cost.seconds)
            together.append(start + costs.seconds_on_all(cost.seconds, streams))
        elif is_view(op) or not _touches_tensors(op):
            alone.append(0.0)
            together.append(inf)
        else:
            alone.append(inf)
            together.append(costs.cost(op).seconds)
    return ProcessorProblem(block.graph, tuple(alone), tuple(together), streams)


def _touches_tensors(op: Operation) -> bool:
    values = (*op.operands, *op.results)
    return bool(op.regions) or any(isinstance(value.type, TensorType) for value in values)
