"""`measure-order`: decides between the best orders of each subgraph by running them here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.remarks import emit_remark
from braid.dialects.braid.variants import public_functions
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.memory_problem import memory_problem
from braid.passes.order.order_attribute import ORDER, order_attribute, ordered_ops, plain_orders
from braid.passes.order.search_order import SearchOrderPass, block_order
from braid.passes.order.subgraphs import COUNTED_OPS, pieces_of
from braid.solvers.ordering import MemoryProblem, baselines, count_orders
from braid.solvers.ordering.graph import all_orders
from braid.tuning.order_timing import Run, prepare_on_host
from braid.tuning.subgraph_module import subgraph_module

ENUMERATED_ORDERS = 2000
ROUNDS = 5
MARGIN = 0.97
"""Another order is better when it takes at most so much of the time of the one searched."""

Prepare = Callable[[ModuleOp], Run]


def candidate_orders(
    problem: MemoryProblem, first: Sequence[int], count: int
) -> list[tuple[int, ...]]:
    """Up to `count` different orders: `first`, then those of the least estimate.

    They are of all orders where there are few, otherwise of the classical ones.
    """
    graph = problem.graph
    few = len(graph) <= COUNTED_OPS and count_orders(graph, ENUMERATED_ORDERS) is not None
    orders = all_orders(graph) if few else iter(baselines(problem).values())
    ranked = sorted(map(tuple, orders), key=problem.evaluate)
    return list(islice(dict.fromkeys((tuple(first), *ranked)), count))


def measured_seconds(runs: Sequence[Run]) -> list[float]:
    """The least time of each, in turns, so that all meet the same machine."""
    least = [run() for run in runs]
    for _ in range(ROUNDS):
        least = [min(seconds, run()) for seconds, run in zip(least, runs, strict=True)]
    return least


@dataclass(frozen=True)
class MeasureOrderPass(ModulePass):
    """Searches as `search-order`, then times the best orders of every subgraph on this machine.

    In: what `search-order` reads in the default pipeline. Out: `braid.order`, where the order of
    a subgraph with at least two is the one of up to `candidates` that runs fastest: the one found
    by the search, and others of the least peak memory. Only one that is clearly faster replaces
    it. Subgraphs are not begun after `time_limit` seconds; those with control flow, and functions
    with open dims, stay as searched. One remark a subgraph, with all times in seconds.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 1, 0>]}
    ```
    """

    name = "measure-order"

    candidates: int = 4
    time_limit: float = 60.0
    search_seconds: float = 2.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Searches, measures, and writes the decision."""
        SearchOrderPass(time_limit=self.search_seconds).apply(ctx, op)
        Measuring(self, prepare_on_host).run(op)


@dataclass(frozen=True)
class Measuring:
    """Times orders as `options` say, on the machine that `prepare` compiles for."""

    options: MeasureOrderPass
    prepare: Prepare

    def run(self, module: ModuleOp) -> None:
        """Replaces the orders in `module` of subgraphs that run faster in another."""
        deadline = monotonic() + self.options.time_limit
        for function in public_functions(module):
            self._measure(function, deadline)

    def _measure(self, function: FuncOp, deadline: float) -> None:
        block = BlockGraph.of(function.body.block)
        orders = plain_orders(function.attributes[ORDER])
        assert orders is not None
        ops = ordered_ops(block.block)
        searched = [block.index[ops[place]] for place in orders[0] if ops[place] in block.index]
        problem = memory_problem(block, [0] * len(block.ops))
        joined: list[int] = []
        for piece in pieces_of(block.graph, 1, 2):
            members = set(piece)
            first = [number for number in searched if number in members]
            local = problem.restrict(piece, joined)
            place = {number: index for index, number in enumerate(piece)}
            tried = candidate_orders(local, [place[n] for n in first], self.options.candidates)
            found = [[piece[index] for index in order] for order in tried]
            if len(found) > 1 and monotonic() < deadline:
                joined += self._fastest(block, found)
            else:
                joined += first
        function.attributes[ORDER] = order_attribute([block_order(block, joined)])

    def _fastest(self, block: BlockGraph, orders: Sequence[Sequence[int]]) -> Sequence[int]:
        modules = [subgraph_module(block, order) for order in orders]
        runs = [self.prepare(module) for module in modules if module is not None]
        if len(runs) < len(orders):
            return orders[0]
        seconds = measured_seconds(runs)
        best = min(range(len(orders)), key=seconds.__getitem__)
        chosen = best if seconds[best] <= MARGIN * seconds[0] else 0
        emit_remark(
            block.ops[orders[0][0]],
            self.options.name,
            f"{len(orders)} orders of {len(orders[0])} ops measured: {seconds[chosen]:.3g} s, "
            f"searched {seconds[0]:.3g} s",
            seconds=seconds[chosen],
            searched=seconds[0],
            candidates=len(orders),
            chosen=chosen,
        )
        return orders[chosen]
