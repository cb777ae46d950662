"""Assignments in which devices take turns only where that pays."""

from __future__ import annotations

from dataclasses import replace

from braid.solvers.deadline import Deadline
from braid.solvers.partition.problem import InfeasiblePartition, PartitionProblem, cost
from braid.solvers.partition.solve import Partition, solve

LEAST_GAIN = 1e-4
"""The part of the cost that replicas save at the least: they take memory on each device.

No more than that, since they balance themselves; a split does as far as seconds are predicted well.
"""


def solve_with_replicas(
    problem: PartitionProblem, *, time_limit: float = 60.0, seed: int = 0, workers: int = 1
) -> Partition:
    """Solve as `solve` does, without replicas where these save less than `LEAST_GAIN`.

    The bound is that of `problem`, so that it holds with and without them. Replicas of one set go
    to one device where the cost stays within the same part of the best one. Raises as `solve`.
    """
    if not problem.replicas:
        return solve(problem, time_limit=time_limit, seed=seed, workers=workers)
    deadline = Deadline.after(time_limit)
    found = solve(problem, time_limit=0.6 * time_limit, seed=seed, workers=workers)
    enough = found.cost * (1 + LEAST_GAIN)
    left = max(deadline.remaining, 0.1 * time_limit)
    try:
        alone = solve(_without(problem), time_limit=left, seed=seed, workers=workers)
    except (InfeasiblePartition, TimeoutError):
        alone = None
    if alone is not None and alone.cost <= enough:
        return Partition(alone.device, alone.cost, min(found.lower_bound, alone.cost))
    device = list(found.device)
    for number, members in enumerate(problem.replicas, problem.single):
        for member in members if number in device else ():
            moved = [member if k == number else k for k in device]
            if _runs(problem, moved) and cost(problem, moved) <= enough:
                device = moved
                break
    seconds = cost(problem, device)
    return Partition(tuple(device), seconds, min(found.lower_bound, seconds))


def _without(problem: PartitionProblem) -> PartitionProblem:
    """Return the problem in which no devices take turns."""
    single = problem.single
    return replace(
        problem,
        seconds=problem.seconds[:, :single],
        receive=problem.receive[:, :single],
        send=problem.send[:, :single],
        start=problem.start[:single],
        capacity=problem.capacity[:single],
        replicas=(),
    )


def _runs(problem: PartitionProblem, device: list[int]) -> bool:
    return all(problem.seconds[op, k] < float("inf") for op, k in enumerate(device))
