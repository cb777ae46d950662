"""The search for the least peak against list schedules with noise, for as long."""

from math import inf
from random import Random
from time import monotonic

import pytest

from braid.solvers.ordering import Graph, MemoryProblem, Tensor, search

SIZE = 250
SECONDS = 5.0


def layered(random: Random) -> MemoryProblem:
    """Ops that read a few of those shortly before them."""
    width = random.choice([5, 10, 20, 40])
    edges = [
        (before, op)
        for op in range(1, SIZE)
        for before in random.sample(
            range(max(0, op - 3 * width), op), min(op, 3 * width, random.randint(1, 3))
        )
    ]
    graph = Graph.from_edges(SIZE, edges)
    sizes = [random.choice([1, 2, 4, 8, 16]) * random.randint(1, 64) for _ in range(SIZE)]
    users = graph.successors
    return MemoryProblem(
        graph, tuple(Tensor(sizes[op], op, users[op], not users[op]) for op in range(SIZE))
    )


def noisy_list(problem: MemoryProblem, random: Random) -> list[int]:
    """Of the ready ops the one after which least is live, more or less."""
    graph, sizes = problem.graph, [tensor.size for tensor in problem.tensors]
    noise = random.choice([0.05, 0.2, 0.5, 1.0]) * sum(sizes) / len(sizes)
    missing = [len(before) for before in graph.predecessors]
    left = [len(after) for after in graph.successors]
    ready = [op for op, count in enumerate(missing) if not count]
    order: list[int] = []

    def growth(op: int) -> float:
        freed = sum(sizes[before] for before in graph.predecessors[op] if left[before] == 1)
        return sizes[op] - freed + random.gauss(0, noise)

    while ready:
        op = min(ready, key=growth)
        ready.remove(op)
        order.append(op)
        for before in graph.predecessors[op]:
            left[before] -= 1
        for after in graph.successors[op]:
            missing[after] -= 1
            if not missing[after]:
                ready.append(after)
    return order


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_the_search_is_no_worse_than_noisy_lists(seed: int) -> None:
    random = Random(seed)
    problem = layered(random)
    found = search(problem, time_limit=SECONDS, seed=seed)
    best, end = inf, monotonic() + SECONDS
    while monotonic() < end:
        best = min(best, problem.evaluate(noisy_list(problem, random)))
    assert found.value <= best
