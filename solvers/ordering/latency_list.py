"""List scheduling along a reference order, which decides which values are on the chip together.

Among the first few ready ops of the reference, the one that can start first is issued. A small
window keeps values as close together as in the reference, a large one keeps the units busy.
"""

from bisect import insort
from collections.abc import Iterator, Sequence
from time import monotonic

from braid.solvers.ordering.baselines import depth_first
from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.traffic import NO_TRAFFIC

WINDOWS = (1, 4, 16, 64)
CHECKED = 64
"""Ops between looks at the clock."""


def list_orders(problem: LatencyProblem, deadline: float) -> Iterator[list[int]]:
    """Yield orders for `WINDOWS` along two depth-first orders, until `deadline`."""
    references = (post_order(problem.graph), depth_first(problem.graph))
    for window in WINDOWS:
        for reference in references:
            if monotonic() > deadline:
                return
            order = ListSchedule(problem, reference, window).run(deadline)
            if order is not None:
                yield order


def post_order(graph: Graph) -> list[int]:
    """Return the postorder of a depth-first search of predecessors from the ops without users.

    Operands of an op are made as late as possible, one after the other.
    """
    order: list[int] = []
    seen = [False] * len(graph)
    for root in (op for op in range(len(graph)) if not graph.successors[op]):
        seen[root] = True
        stack = [(root, iter(graph.predecessors[root]))]
        while stack:
            op, pending = stack[-1]
            before = next((other for other in pending if not seen[other]), None)
            if before is None:
                order.append(op)
                stack.pop()
            else:
                seen[before] = True
                stack.append((before, iter(graph.predecessors[before])))
    return order


class ListSchedule:
    """Issues the ops of `problem`, the ready ones within `window` of `reference` in any order.

    Loads do not wait for free memory here; an op that does not fit is not preferred to the first.
    """

    def __init__(self, problem: LatencyProblem, reference: Sequence[int], window: int) -> None:
        self.problem = problem
        self.traffic = traffic = problem.traffic or NO_TRAFFIC
        self.reference = reference
        self.window = window
        self.free = [0.0] * len(problem.slots)
        self.ends = [0.0] * len(problem)
        self.left = [len(value.consumers) for value in traffic.values]
        self.here = [value.present for value in traffic.values]
        self.live = sum(value.size for value in traffic.values if value.present)

    def run(self, deadline: float) -> list[int] | None:
        """Return the order, None when `deadline` comes first."""
        graph = self.problem.graph
        rank = {op: place for place, op in enumerate(self.reference)}
        missing = [len(before) for before in graph.predecessors]
        ready = sorted(rank[op] for op, count in enumerate(missing) if not count)
        order: list[int] = []
        while ready:
            if len(order) % CHECKED == 0 and monotonic() > deadline:
                return None
            first = ready[: self.window]
            op = self.reference[min(first, key=lambda place: self._key(place, first[0]))]
            ready.remove(rank[op])
            order.append(op)
            self._issue(op)
            for after in graph.successors[op]:
                missing[after] -= 1
                if not missing[after]:
                    insort(ready, rank[after])
        return order

    def _key(self, place: int, first: int) -> tuple[bool, float, int]:
        op, values = self.reference[place], self.traffic.values
        moved = [v for v in self.traffic.reads.get(op, ()) if not self.here[v]]
        size = sum(values[v].size for v in (*moved, *self.traffic.makes.get(op, ())))
        full = place != first and self.live + size > self.traffic.capacity
        start = self._ready(op, sum(values[v].load for v in moved))
        for unit, _, _ in self.problem.plain[op][:1]:
            start = max(start, self.free[self._first_free(unit)])
        return full, start, place

    def _ready(self, op: int, load: float) -> float:
        loaded = self.free[self._first_free(self.traffic.load_unit)] + load if load else 0.0
        ends = self.ends
        return max(loaded, *(ends[before] for before in self.problem.graph.predecessors[op]), 0.0)

    def _first_free(self, unit: int) -> int:
        return self.problem.slots.first_free(unit, self.free)

    def _issue(self, op: int) -> None:
        values, reads = self.traffic.values, self.traffic.reads.get(op, ())
        moved = [v for v in reads if not self.here[v]]
        load = sum(values[v].load for v in moved)
        ready = self._ready(op, load)
        if moved:
            self.free[self._first_free(self.traffic.load_unit)] += load
        self.ends[op] = self.problem.advance(op, ready, self.free)
        made = self.traffic.makes.get(op, ())
        for v in (*moved, *made):
            self.here[v] = True
            self.live += values[v].size
        for v in reads:
            self.left[v] -= 1
        for v in (*reads, *made):
            if not self.left[v] and not values[v].kept:
                self.live -= values[v].size
