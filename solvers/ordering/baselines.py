"""The classical orders; no search result is worse than any of them."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.memory import MemoryProblem


def kahn(graph: Graph) -> list[int]:
    """Return the order of Kahn's algorithm, first in, first out."""
    return list(graph.topological_order)


def depth_first(graph: Graph) -> list[int]:
    """Return the reverse postorder of a depth-first search from the ops without predecessors."""
    order: list[int] = []
    seen = [False] * len(graph)
    for root in reversed(range(len(graph))):
        if seen[root] or graph.predecessors[root]:
            continue
        seen[root] = True
        stack = [(root, iter(reversed(graph.successors[root])))]
        while stack:
            op, pending = stack[-1]
            following = next((after for after in pending if not seen[after]), None)
            if following is None:
                order.append(op)
                stack.pop()
            else:
                seen[following] = True
                stack.append((following, iter(reversed(graph.successors[following]))))
    return order[::-1]


def greedy_by_memory(problem: MemoryProblem) -> list[int]:
    """Return the order that always runs the ready op after which the fewest bytes are live."""
    graph = problem.graph
    missing = [len(before) for before in graph.predecessors]
    left = list(problem.user_counts)
    growth = list(problem.outputs)
    for op, indices in enumerate(problem.freeable):
        growth[op] -= sum(problem.tensors[i].size for i in indices if left[i] == 1)
    ready = [(growth[op], problem.needs[op], op) for op, count in enumerate(missing) if not count]
    heapify(ready)
    done = [False] * len(graph)
    order: list[int] = []
    while ready:
        bytes_more, _, op = heappop(ready)
        if done[op] or bytes_more != growth[op]:
            continue
        done[op] = True
        order.append(op)
        for index in problem.freeable[op]:
            left[index] -= 1
            if left[index] == 1:
                last = next(user for user in problem.tensors[index].consumers if not done[user])
                growth[last] -= problem.tensors[index].size
                if not missing[last]:
                    heappush(ready, (growth[last], problem.needs[last], last))
        for after in graph.successors[op]:
            missing[after] -= 1
            if not missing[after]:
                heappush(ready, (growth[after], problem.needs[after], after))
    return order


def by_priority(graph: Graph, priority: Sequence[float]) -> list[int]:
    """Return the order that always takes the ready op of the highest priority (list scheduling)."""
    missing = [len(before) for before in graph.predecessors]
    ready = [(-priority[op], op) for op, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, op = heappop(ready)
        order.append(op)
        for after in graph.successors[op]:
            missing[after] -= 1
            if not missing[after]:
                heappush(ready, (-priority[after], after))
    return order
