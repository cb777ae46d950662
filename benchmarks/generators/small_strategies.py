"""Small random strategy problems and their optimum by enumeration."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np

from braid.solvers.strategy import ProblemBuilder, StrategyProblem, evaluate


def random_problem(
    seed: int,
    *,
    nodes: int = 6,
    strategies: int = 3,
    density: float = 0.5,
    forbidden: float = 0.2,
    integral: bool = True,
    memory: bool = False,
) -> StrategyProblem:
    """Return a problem in which about `forbidden` of all pairs cannot stand together."""
    rng = np.random.default_rng(seed)

    def costs(*shape: int) -> np.ndarray:
        values = rng.integers(0, 8, shape) if integral else rng.random(shape) * 1e-3
        return np.where(rng.random(shape) < forbidden, inf, values.astype(float))

    builder = ProblemBuilder()
    sizes = rng.integers(1, strategies + 1, nodes).tolist()
    for size in sizes:
        start = int(rng.integers(0, 4))
        live = (start, start + int(rng.integers(0, 4)))
        builder.add_node(costs(size), usage=rng.integers(0, 6, size), live=live)
    for u, v in product(range(nodes), repeat=2):
        if u != v and rng.random() < density / 2:
            matrix = costs(sizes[u], sizes[v])
            kind = rng.random()
            if kind < 0.2:  # an all-or-nothing edge, as between an alias and its origin
                matrix = np.where(np.isinf(matrix), inf, 0.0)
            elif kind < 0.3:
                matrix = costs(sizes[u], 1) + costs(1, sizes[v])
            builder.add_edge(u, v, matrix)
    limit = int(rng.integers(2, 3 * nodes)) if memory else None
    return builder.build(memory_limit=limit)


def brute_force(problem: StrategyProblem) -> float:
    """Return the least cost over all assignments; ``inf`` when none is feasible."""
    choices = product(*(range(costs.size) for costs in problem.node_costs))
    return min(evaluate(problem, choice) for choice in choices)
