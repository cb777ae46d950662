"""The time that the ops of a block take on lanes, as a scheduling problem."""

from math import inf

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from braid.analysis.execution.compute_ops import is_compute
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.regions import FusedOp
from braid.passes.order.block_graph import BlockGraph
from braid.solvers.ordering.lanes import LaneProblem
from braid.targets.backends import kernel_families
from braid.targets.costs.kernel_costs import KernelCosts
from braid.targets.costs.op_seconds import measured_seconds, op_seconds
from braid.targets.machines.target import BackendDescription, Pool


def lane_problem(
    block: BlockGraph, backend: BackendDescription, pool: Pool, lanes: int
) -> LaneProblem:
    """The problem of scheduling `block` on `lanes` of `pool`.

    A kernel runs on one lane, or its iterations on all. Views and scalars take no time; what else
    is no kernel, such as control flow, runs alone. Raises UnsupportedError for open dims.
    """
    costs = KernelCosts(kernel_families(backend.name, backend.machine))
    alone: list[float] = []
    together: list[float] = []
    for op in block.ops:
        if isinstance(op, FusedOp) or is_compute(op):
            seconds = kernel_seconds(op, costs)
            alone.append(backend.launch_seconds + seconds)
            together.append(backend.launch_seconds + pool.seconds_on_all(seconds, lanes))
        elif is_view(op) or not _touches_tensors(op):
            alone.append(0.0)
            together.append(inf)
        else:
            alone.append(inf)
            together.append(op_seconds(op))
    return LaneProblem(block.graph, tuple(alone), tuple(together), lanes)


def kernel_seconds(op: Operation, costs: KernelCosts) -> float:
    """One run of the kernel of `op` on one core: profiled, measured, predicted, or estimated."""
    if not isinstance(op, FusedOp) or measured_seconds(op) is not None:
        return op_seconds(op)
    choice = stored_choice(op)
    match = costs.match_for(op, choice)
    return op_seconds(op) if match is None else costs.option(match, choice).seconds


def _touches_tensors(op: Operation) -> bool:
    values = (*op.operands, *op.results)
    return bool(op.regions) or any(isinstance(value.type, TensorType) for value in values)
