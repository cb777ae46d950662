"""`assign-inter-op-streams`: which kernels run side by side, each on a thread of its own."""

from dataclasses import dataclass
from math import isfinite

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.inter_op_streams import inter_op_stream_count, set_inter_op_stream
from braid.dialects.braid.attribute_names import INTER_OP_STREAMS, ORDER
from braid.dialects.braid.order import order_attribute, ordered_ops, plain_orders
from braid.dialects.braid.variants import public_functions
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.inter_op_problem import inter_op_problem
from braid.passes.order.launch_problem import launches
from braid.passes.order.search_order import SearchOrderPass, block_order
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.solvers.ordering.processor_search import ProcessorSchedule, search_processors
from braid.solvers.ordering.processors import ProcessorProblem
from braid.support.errors import BraidError
from braid.targets.costs.cost import tally
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import BackendDescription, Pool, Target

_MOST_STREAMS = 256
"""The most streams, more than machines have processors; the search for an order takes time by their
number."""


def require_pool(target: Target, streams: int) -> tuple[BackendDescription, Pool]:
    """Return the backend of `target` whose pool has `streams`.

    Raises BraidError for less than one stream or more than 256, for a target without a pool, and
    for more streams than its pool has.
    """
    if not 1 <= streams <= _MOST_STREAMS:
        raise BraidError(f"there are {streams} inter-op streams, expected 1 to {_MOST_STREAMS}")
    backend = target.default_backend
    if backend.pool is None:
        raise BraidError(
            f"target '{target.name}' has no processors that run ops side by side: backend "
            f"'{backend.name}' has no pool",
            hint="add [[backend.pool]] to the target, or use one stream",
        )
    if 0 < backend.pool.count < streams:
        raise BraidError(
            f"target '{target.name}' has {backend.pool.count} of '{backend.pool.name}', "
            f"not {streams}"
        )
    return backend, backend.pool


def searched_order(function: FuncOp, block: BlockGraph) -> list[int]:
    """Return the ops of `block` in the order that `search-order` has written on `function`."""
    orders = plain_orders(function.attributes[ORDER])
    assert orders is not None
    ops = ordered_ops(block.block)
    return [block.index[ops[place]] for place in orders[0] if ops[place] in block.index]


def write_schedule(function: FuncOp, block: BlockGraph, schedule: ProcessorSchedule) -> None:
    """Write the order of `function`, and which stream runs which op."""
    streams = inter_op_stream_count(function)
    for op, stream in zip(block.ops, schedule.processors, strict=True):
        set_inter_op_stream(op, stream if streams > 1 else None)
    function.attributes[ORDER] = order_attribute([block_order(block, schedule.order)])


@dataclass(frozen=True)
class AssignInterOpStreamsPass(DecisionPass):
    """Schedules the kernels of each public function on inter-op streams, for the least time.

    A stream is a list of kernels for one thread of the pool. In: ops in groups, like
    `search-order`. Out: `braid.inter_op_streams` on functions, `braid.inter_op_stream` on the
    groups that run on one stream, counted from 0, and `braid.order`. A group without a stream uses
    all of them at once. So does control flow, in which ops run one after the other, in the order of
    `search-order`. Prints one remark per function with the predicted seconds, their lower bound and
    gap, and the seconds of sequential execution.

    `streams` are threads of the pool of `target`. The search ends after `time_limit` seconds, half
    of them for the order; the result is the same for one `seed` unless that cuts it short. Raises
    BraidError for fewer streams than 1 and for a target without a pool.

    ```mlir
    %1 = braid.fused(%0) {braid.inter_op_stream = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> { … }
    ```
    """

    name = "assign-inter-op-streams"

    streams: int = 2
    target: str | None = None
    time_limit: float = 4.0
    seed: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write the decision."""
        backend, _ = require_pool(target_of(op, self.target), self.streams)
        SearchOrderPass(time_limit=self.time_limit / 2, seed=self.seed).apply(ctx, op)
        functions = [f for f in public_functions(op) if not launches(f)]
        for function in functions:
            block = BlockGraph.of(function.body.block)
            costs = DeviceCosts(backend)
            problem = inter_op_problem(block, costs, self.streams)
            schedule = search_processors(
                problem,
                time_limit=self.time_limit / 2 / len(functions),
                seed=self.seed,
                reference=searched_order(function, block),
            )
            function.attributes[INTER_OP_STREAMS] = IntegerAttr(self.streams, i64)
            write_schedule(function, block, schedule)
            self._report(function, problem, schedule, tally(costs.asked))

    def _report(
        self, function: FuncOp, problem: ProcessorProblem, schedule: ProcessorSchedule, sources: str
    ) -> None:
        """Report the gain of the streams."""
        one = sum(s if isfinite(s) else problem.together[op] for op, s in enumerate(problem.alone))
        side = sum(stream is not None for stream in schedule.processors)
        emit_remark(
            function,
            self.name,
            f"{side} of {len(problem)} ops on {problem.processors} inter-op streams, "
            f"cost {schedule.value:.6g} s, lower bound {schedule.lower_bound:.6g} s, "
            f"gap {100 * schedule.gap:.1f} %, on one stream {one:.6g} s; costs: {sources}",
            streams=problem.processors,
            cost=schedule.value,
            lower_bound=schedule.lower_bound,
            gap=schedule.gap,
            seconds_on_one_stream=one,
            sources=sources,
        )
