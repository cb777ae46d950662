"""Compute the least cost of a split if the best assignment uses a single device."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite

import numpy as np

from braid.solvers.partition import InfeasiblePartition, PartitionProblem, cost, solve

_TRIED_ALONE = 200
"""The ops that are moved one by one, those with the most seconds."""
_TRIED = 3
_SECONDS = 1.0


def best_split(
    problem: PartitionProblem, nodes: Sequence[int], device: Sequence[int]
) -> float | None:
    """Return the seconds of the best assignment found in which not all `nodes` are where `device`
    has them.

    One op is moved, and the others are assigned anew around it. None where no op can be elsewhere.
    """
    largest = sorted(nodes, key=lambda node: -problem.seconds[node, device[node]])
    moves: list[tuple[float, int, int]] = []
    for node in largest[:_TRIED_ALONE]:
        for other in range(problem.devices):
            if other != device[node] and isfinite(problem.seconds[node, other]):
                moved = list(device)
                for each in _with(problem, node):
                    moved[each] = other
                moves.append((_cost(problem, moved), node, other))
    if not moves:
        return None
    found: list[float] = []
    for seconds, node, other in sorted(moves)[:_TRIED]:
        found.append(seconds)
        table = problem.seconds.copy()
        table[node, np.arange(problem.devices) != other] = inf
        try:
            found.append(solve(replace(problem, seconds=table), time_limit=_SECONDS).cost)
        except (InfeasiblePartition, TimeoutError):
            continue
    best = min(found)
    return best if isfinite(best) else None


def _with(problem: PartitionProblem, node: int) -> Sequence[int]:
    return next((nodes for nodes in problem.colocated if node in nodes), (node,))


def _cost(problem: PartitionProblem, device: Sequence[int]) -> float:
    runs = all(isfinite(problem.seconds[node, k]) for node, k in enumerate(device))
    return cost(problem, device) if runs else inf
