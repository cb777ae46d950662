"""Compute min-marginals of a strategy problem: what every other choice would have cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from braid.solvers.strategy.problem import InfeasibleAssignment, StrategyProblem, evaluate
from braid.solvers.strategy.solve import solve


@dataclass(frozen=True)
class Marginals:
    """Least total costs with one node held at each of its strategies, ``inf`` where impossible.

    Attributes:
        costs: shape ``(strategies,)``.
        reoptimized: whether all other nodes were chosen anew; else they keep their strategies,
            and the costs are upper bounds.
    """

    costs: tuple[float, ...]
    reoptimized: bool


def min_marginals(
    problem: StrategyProblem,
    assignment: Sequence[int],
    nodes: Sequence[int],
    *,
    time_limit: float = 5.0,
) -> list[Marginals]:
    """Return the marginals of `nodes` around an optimal `assignment`.

    After `time_limit` seconds, the nodes that are left are answered with all others held.
    """
    deadline = time.monotonic() + time_limit
    best = evaluate(problem, assignment)
    return [_marginals(problem, assignment, node, best, deadline) for node in nodes]


def _marginals(
    problem: StrategyProblem, assignment: Sequence[int], node: int, best: float, deadline: float
) -> Marginals:
    costs: list[float] = []
    reoptimized = True
    for strategy in range(len(problem.node_costs[node])):
        left = deadline - time.monotonic()
        if strategy == assignment[node]:
            costs.append(best)
            continue
        forced = _forced(problem, node, strategy, left) if reoptimized and left > 0 else None
        reoptimized = forced is not None
        held = [*assignment[:node], strategy, *assignment[node + 1 :]]
        costs.append(evaluate(problem, held) if forced is None else forced)
    return Marginals(tuple(costs), reoptimized)


def _forced(problem: StrategyProblem, node: int, strategy: int, time_limit: float) -> float | None:
    """Return the least cost with `node` at `strategy`; None where there is no time to prove it."""
    only = np.full_like(problem.node_costs[node], np.inf)
    only[strategy] = problem.node_costs[node][strategy]
    node_costs = (*problem.node_costs[:node], only, *problem.node_costs[node + 1 :])
    try:
        solution = solve(replace(problem, node_costs=node_costs), time_limit=time_limit)
    except InfeasibleAssignment:
        return float("inf")
    except TimeoutError:
        return None
    return solution.cost if solution.proven else None
