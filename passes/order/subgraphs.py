"""Pieces of a block between key nodes, searched one by one and joined in data-flow order."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from braid.solvers.deadline import Deadline
from braid.solvers.ordering import (
    Graph,
    LatencyProblem,
    MemoryProblem,
    Order,
    count_orders,
    search,
    split_at_key_nodes,
)
from braid.solvers.ordering.latency import restrict

COUNTED_OPS = 64
"""Orders of larger subgraphs are not counted."""
COUNTED_ORDERS = 20_000
JOINED = 0.5
"""The time for the subgraphs joined, against that for each on its own."""


@dataclass(frozen=True)
class Subgraph:
    """Ops that are ordered together; `orders` is None if there are too many to count."""

    ops: tuple[int, ...]
    orders: int | None
    result: Order

    @property
    def order(self) -> tuple[int, ...]:
        """The ops in the order found."""
        return tuple(self.ops[place] for place in self.result.order)


def pieces_of(graph: Graph, key_nodes_per_subgraph: int, min_nodes: int) -> list[list[int]]:
    """Return the ops of each subgraph in data-flow order, ascending within each.

    Ascending numbers are the order in which the ops stand, a topological order.
    """
    pieces = split_at_key_nodes(graph, key_nodes_per_subgraph, min_nodes)
    return [sorted(piece) for piece in pieces]


def order_count(graph: Graph, ops: Sequence[int]) -> int | None:
    """Return the topological orders of `ops`, None when there are too many to count."""
    local = graph.restrict(ops)
    if _is_chain(local):
        return 1
    return count_orders(local, COUNTED_ORDERS) if len(ops) <= COUNTED_OPS else None


def _is_chain(graph: Graph) -> bool:
    """Return whether `graph`, numbered in a topological order, has no other order."""
    return all(op - 1 in graph.predecessors[op] for op in range(1, len(graph)))


@dataclass(frozen=True)
class SubgraphSearch:
    """Searches a problem piece by piece until `deadline`."""

    problem: MemoryProblem | LatencyProblem
    deadline: Deadline
    seed: int
    good_enough: float
    key_nodes_per_subgraph: int
    min_nodes: int

    def run(self) -> tuple[list[Subgraph], Order]:
        """Return the subgraphs in data-flow order, and the order and bound of the whole.

        The result is never worse than the given order.
        """
        graph = self.problem.graph
        pieces = pieces_of(graph, self.key_nodes_per_subgraph, self.min_nodes)
        # Overlapping work is searched a second time, as a whole.
        left = len(graph) * (1 + JOINED if self._overlaps and len(pieces) > 1 else 1)
        done: list[int] = []
        subgraphs: list[Subgraph] = []
        for piece in pieces:
            own = self.deadline.share(len(piece) / max(left, 1))
            subgraphs.append(self._search(piece, done, own))
            left -= len(piece)
            done += piece
        return subgraphs, self._join(subgraphs)

    def local(self, subgraphs: Sequence[Subgraph], index: int) -> MemoryProblem | LatencyProblem:
        """Return the problem of one of these subgraphs, after those before it."""
        done = [op for subgraph in subgraphs[:index] for op in subgraph.ops]
        return self._restrict(subgraphs[index].ops, done)

    def _search(self, piece: Sequence[int], done: Sequence[int], deadline: Deadline) -> Subgraph:
        orders = order_count(self.problem.graph, piece)
        local = self._restrict(piece, done)
        stands = range(len(piece))
        if orders == 1:
            value = local.evaluate(stands)
            return Subgraph(tuple(piece), orders, Order(tuple(stands), value, value))
        found = search(
            local,
            deadline=deadline,
            seed=self.seed,
            good_enough=self.good_enough,
            candidates=[stands],
        )
        return Subgraph(tuple(piece), orders, found)

    def _restrict(
        self, piece: Sequence[int], done: Sequence[int]
    ) -> MemoryProblem | LatencyProblem:
        if isinstance(self.problem, MemoryProblem):
            return self.problem.restrict(piece, done)
        return restrict(self.problem, piece)

    def _join(self, subgraphs: Sequence[Subgraph]) -> Order:
        """Return the whole problem's order; where subgraphs overlap, it is searched once more."""
        joined = [op for subgraph in subgraphs for op in subgraph.order]
        stands = list(range(len(joined)))
        order = min(joined, stands, key=self.problem.evaluate)
        value, bound = self.problem.evaluate(order), self._bound(subgraphs)
        open_gap = bound < value and value > self.good_enough
        if self._overlaps and len(subgraphs) > 1 and open_gap and not self.deadline.passed:
            found = search(
                self.problem,
                deadline=self.deadline,
                seed=self.seed,
                good_enough=max(self.good_enough, bound),
                candidates=[order],
            )
            return Order(found.order, found.value, min(max(bound, found.lower_bound), found.value))
        return Order(tuple(order), value, min(bound, value))

    @cached_property
    def _overlaps(self) -> bool:
        """Return whether loads that wait for nothing may run while an earlier subgraph does."""
        return isinstance(self.problem, LatencyProblem) and (
            self.problem.traffic is not None
            or not all(stage.waits for own in self.problem.stages for stage in own)
        )

    def _bound(self, subgraphs: Sequence[Subgraph]) -> float:
        """Return a lower bound of all orders of the whole.

        A subgraph cut at key nodes needs its memory in every order of the whole, and its time
        between its key nodes, apart from steps that wait for nothing.
        """
        if isinstance(self.problem, MemoryProblem):
            return max((subgraph.result.lower_bound for subgraph in subgraphs), default=0)
        if not self._overlaps or len(subgraphs) == 1:
            return sum(subgraph.result.lower_bound for subgraph in subgraphs)
        waiting = tuple(tuple(s for s in own if s.waits) for own in self.problem.stages)
        late = LatencyProblem(self.problem.graph, waiting)
        end = self.deadline.at
        parts = sum(restrict(late, subgraph.ops).lower_bound(end) for subgraph in subgraphs)
        return max(self.problem.lower_bound(end), parts)
