"""Rounds of simulated annealing of an order of issue, each twice as long as the one before."""

from math import inf
from time import monotonic

from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.latency_timeline import Cooling

FIRST_ROUND = 4096
"""Moves."""
HOT, COLD = 0.5, 0.005
"""Temperatures in the average time of an op."""
TRIED = 0.2
"""The time for each way of loading until one is settled on."""


def anneal(
    problem: LatencyProblem,
    start: list[int],
    target: float,
    deadline: float,
    seed: int,
    moves: float = inf,
) -> list[int]:
    """Anneal `start` until `target`, `deadline`, or for so many `moves`; return the best order.

    An order that is good without early loads is another one than with them: both are tried for a
    round. Raises ValueError where the values of an op do not fit the capacity.
    """
    if len(start) < 3:
        return start
    best = {ahead: (problem.seconds(start, ahead), start) for ahead in problem.aheads}
    heat = min(best.values())[0] / len(start)
    ways, length = problem.aheads, FIRST_ROUND
    while True:
        cooling = Cooling(HOT * heat, COLD * heat, int(min(length, moves)))
        for ahead in ways:
            now = monotonic()
            limit = now + (deadline - now) * TRIED if len(ways) > 1 else deadline
            found, value = problem.timeline(ahead).anneal(
                best[ahead][1], cooling, seed + length, target, limit
            )
            best[ahead] = min(best[ahead], (value, found))
        ways = (min(best, key=best.__getitem__),)
        value, order = best[ways[0]]
        moves -= length
        length *= 2
        if value <= target or moves <= 0 or monotonic() > deadline:
            return order
