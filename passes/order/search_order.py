"""`search-order`: in which order the ops of every block run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.tensor_storage import is_addressing
from braid.analysis.structure.functions import functions_beside
from braid.dialects.braid.attribute_names import KEY_NODE, ORDER
from braid.dialects.braid.order import blocks_of, mark_key_node, order_attribute, ordered_ops
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.variants import program_functions
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.candidate_orders import candidate_orders, written
from braid.passes.order.latency_problem import latency_problem
from braid.passes.order.launch_problem import launch_problem, launches
from braid.passes.order.memory_problem import memory_problem
from braid.passes.order.subgraphs import Subgraph, SubgraphSearch
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.solvers.deadline import Deadline
from braid.solvers.ordering import LatencyProblem, MemoryProblem, Order, key_nodes
from braid.targets.costs.cost import Source, tally
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.costs.launch_times import LaunchTimes
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.steps import is_declared

FINISH = 0.5
"""The time to write down and report an order, against that to make the problem of it."""


def searched_ops(function: func.FuncOp) -> Iterator[Operation]:
    """Yield the ops whose blocks have an order, inner ones first; a fused group's ops have no
    buffer.
    """

    def visit(op: Operation) -> Iterator[Operation]:
        if isinstance(op, FusedOp):
            return
        for block in blocks_of(op):
            for inner in block.ops:
                yield from visit(inner)
        if op.regions:
            yield op

    return visit(function)


def block_order(block: BlockGraph, order: Sequence[int]) -> list[int]:
    """Return the positions in the block: constants and parameters first, then `order`."""
    position = {op: place for place, op in enumerate(ordered_ops(block.block))}
    return [position[op] for op in (*block.leaves, *(block.ops[number] for number in order))]


def _sources(graph: BlockGraph) -> str:
    """Return the sources of the seconds of ops: declarations, and otherwise the rates of
    the units.
    """
    timed = (op for op in graph.ops if not is_addressing(op))
    return tally(Counter(Source.DECLARED if is_declared(op) else Source.ROOFLINE for op in timed))


@dataclass(frozen=True)
class SearchOrderPass(DecisionPass):
    """Searches each block of the programs for its best order, subgraph by subgraph.

    In: ops in any order. Out: `braid.order` on every op that owns a block (for each of its
    blocks the present positions of the ops in the new order) and `braid.key_node` on the ops
    that are on every path. One remark per subgraph that has at least two orders, and one per
    function, with the objective's value, its lower bound and the gap.

    `objective` is the peak of live bytes in the arena (`memory`) or the time (`latency`): for a
    function on a device, the time of its units without waits for ports (remarks say where these may
    occur); if functions are launched, the time of the host, the devices of `target` and their copy
    engines. Launches change places for time alone. With `launches_only`, functions without launches
    do not change.

    A search ends after `time_limit` seconds for the whole module, or at a value of at most
    `good_enough`. `key_nodes_per_subgraph` and `min_nodes` make larger subgraphs: one of fewer ops
    is joined with the next. `list_orders` is how many candidates are listed of each subgraph, best
    first, each in a remark with its value; all orders are candidates where there are at most
    20,000. The result never is worse than the present order. Seconds of a search for memory are
    those that counted steps take on a usual machine, so that the result is the same for one `seed`;
    for time it is unless the time limit cuts the search short. Raises UnsupportedError for open
    dims, and BraidError for a cost in a resource that the target does not have.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 1, 0>]}
    ```
    """

    name = "search-order"

    objective: Literal["memory", "latency"] = "memory"
    target: str | None = None
    time_limit: float = 10.0
    seed: int = 0
    good_enough: float = 0.0
    key_nodes_per_subgraph: int = 1
    min_nodes: int = 2
    list_orders: int = 0
    launches_only: bool = False

    def __post_init__(self) -> None:
        if self.key_nodes_per_subgraph < 1:
            raise ValueError(
                f"key-nodes-per-subgraph is {self.key_nodes_per_subgraph}, expected at least 1"
            )
        if self.list_orders < 0:
            raise ValueError(f"list-orders is {self.list_orders}, expected no negative number")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write the decision."""
        after = Deadline.by_work if self.objective == "memory" else Deadline.after
        deadline = after(self.time_limit)
        functions = [f for f in program_functions(op) if f.body.blocks]
        launching = set(filter(launches, functions))
        if self.launches_only:
            functions = [f for f in functions if f in launching]
        if not functions:
            return
        target, counts = target_of(op, self.target), ExecutionCounts.of(op)
        times = LaunchTimes.on(target, functions_beside(op), counts)
        size = sum(1 for function in functions for _ in function.walk())
        search = BlockSearch(self, times, {}, deadline, size)
        for function in functions:
            by_launches = self.objective == "latency" and function in launching
            for owner in searched_ops(function):
                orders = [search.order(block, by_launches) for block in blocks_of(owner)]
                owner.attributes[ORDER] = order_attribute(orders)


@dataclass
class BlockSearch:
    """Searches blocks, inner ones first, within one deadline shared by the ops that are left.

    `values` are the objective's values of the blocks that have been searched.
    """

    options: SearchOrderPass
    times: LaunchTimes
    values: dict[Block, float]
    deadline: Deadline
    ops_left: int

    def order(self, block: Block, by_launches: bool) -> list[int]:
        """Search `block`, mark its key nodes, and return its ops in the order found.

        `by_launches` means that the time is that of the launches and of the host.
        """
        begin = self.deadline.remaining
        graph = BlockGraph.of(block, launches_move=by_launches)
        for op in block.ops:
            op.attributes.pop(KEY_NODE, None)
        for number in key_nodes(graph.graph):
            mark_key_node(graph.ops[number])
        problem = self._problem(graph)
        share = min(1.0, len(graph.ops) / max(self.ops_left, 1))
        finishing = FINISH * (begin - self.deadline.remaining)
        search = SubgraphSearch(
            problem,
            self.deadline.later_by(-finishing).share(share),
            self.options.seed,
            self.options.good_enough,
            self.options.key_nodes_per_subgraph,
            self.options.min_nodes,
        )
        subgraphs, joined = search.run()
        if self.options.list_orders:
            self._list(graph, search, subgraphs)
        self.ops_left -= len(graph.ops)
        self.values[block] = joined.value
        self._report(graph, subgraphs, joined, problem)
        return block_order(graph, joined.order)

    def _expected(self, graph: BlockGraph) -> dict[Block, float]:
        """Return the seconds of the blocks in `graph`, as often as they run each time that
        it does.
        """
        counts = self.times.counts
        runs = counts.of_block(graph.block)
        blocks = [block for op in graph.ops for block in blocks_of(op) if block in self.values]
        return {
            block: self.values[block] * counts.of_block(block) / runs if runs else 0.0
            for block in blocks
        }

    def _problem(self, graph: BlockGraph) -> MemoryProblem | LatencyProblem:
        if graph.launches_move:
            return launch_problem(graph, self.times, self._expected(graph))
        if self.options.objective == "latency":
            return latency_problem(graph, self._backend(graph.block), self._expected(graph))
        inner = [blocks_of(op) if not isinstance(op, FusedOp) else [] for op in graph.ops]
        workspace = [max((int(self.values[b]) for b in blocks), default=0) for blocks in inner]
        return memory_problem(graph, workspace)

    def _list(
        self, graph: BlockGraph, search: SubgraphSearch, subgraphs: Sequence[Subgraph]
    ) -> None:
        for index, subgraph in enumerate(subgraphs):
            if subgraph.orders == 1:
                continue
            listed = candidate_orders(
                search.local(subgraphs, index),
                subgraph.orders,
                subgraph.result.order,
                self.options.list_orders,
                search.deadline,
            )
            ops = [graph.ops[number] for number in subgraph.ops]
            for rank, each in enumerate(listed):
                emit_remark(
                    ops[0],
                    self.options.name,
                    f"subgraph {index}, order {rank}: {each.value:.6g} {self._unit}: "
                    f"{written(ops, each.order)}",
                    subgraph=index,
                    rank=rank,
                    cost=each.value,
                    order=" ".join(map(str, each.order)),
                )

    def _backend(self, block: Block) -> BackendDescription:
        """Return the device that runs `block`."""
        owner = block.parent_op()
        assert owner is not None
        target = self.times.target
        return target.backend_of(device_of(owner, target))

    def _crowded_ports(self, graph: BlockGraph) -> list[str]:
        """Return the ports for which units may wait, which the value leaves out."""
        if self.options.objective == "memory" or graph.launches_move:
            return []
        return DeviceRates(self._backend(graph.block)).crowded_ports()

    @property
    def _unit(self) -> str:
        return "bytes" if self.options.objective == "memory" else "s"

    def _sources(self, graph: BlockGraph) -> dict[str, str]:
        """Return the sources of the seconds of ops, for a remark."""
        if self.options.objective == "memory":
            return {}
        by_launches = graph.launches_move
        return {"sources": self.times.costs.sources() if by_launches else _sources(graph)}

    def _report(
        self,
        graph: BlockGraph,
        subgraphs: Sequence[Subgraph],
        joined: Order,
        problem: MemoryProblem | LatencyProblem,
    ) -> None:
        owner = graph.block.parent_op()
        assert owner is not None
        for index, subgraph in enumerate(subgraphs):
            if subgraph.orders != 1:
                many = subgraph.orders if subgraph.orders is not None else "many"
                self._remark(
                    graph,
                    graph.ops[subgraph.ops[0]],
                    f"subgraph {index}: {len(subgraph.ops)} ops, {many} orders, ",
                    subgraph.result,
                    subgraph=index,
                    ops=len(subgraph.ops),
                    orders=subgraph.orders,
                )
        if len(graph.ops) > 1:
            before = problem.evaluate(range(len(graph.ops)))
            self._remark(
                graph,
                owner,
                f"{len(graph.ops)} ops, before {before:.6g}, ",
                joined,
                before=before,
                **self._sources(graph),
            )

    def _remark(
        self,
        graph: BlockGraph,
        op: Operation,
        prefix: str,
        order: Order,
        **data: int | float | str | None,
    ) -> None:
        unit = self._unit
        ports = ", ".join(f"'{port}'" for port in self._crowded_ports(graph))
        emit_remark(
            op,
            self.options.name,
            f"{prefix}cost {order.value:.6g} {unit}, lower bound {order.lower_bound:.6g} {unit}, "
            f"gap {100 * order.gap:.1f} %"
            + (f"; costs: {data['sources']}" if "sources" in data else "")
            + (f"; as if nothing waited for port {ports}" if ports else ""),
            **data,
            cost=order.value,
            lower_bound=order.lower_bound,
            gap=order.gap,
        )
