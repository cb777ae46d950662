"""Simulated annealing of several orders of issue, of which the better ones continue.

Successive halving (K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and
hyperparameter optimization", AISTATS 2016): after each round half of the orders are left, each of
which gets twice as many moves. The best order with early loads differs from the best one without
them, so each way to load has separate orders.
"""

from collections.abc import Iterable, Sequence
from math import inf
from time import monotonic

from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.latency_timeline import Cooling

FIRST_ROUND = 1024
"""Moves of each order in the first round."""
STARTS = 8
STARTED_OPS = 10_000
"""Ops of all starts together, beyond the first: a round of large ones takes all of the time."""
HOT, COLD = 0.5, 0.005
"""Temperatures in the average time of an op."""

ROUNDING = 1e-9
"""A target counts as reached if it is missed by at most this share."""

Contender = tuple[float, int, list[int]]
"""Seconds, the number of ops by which loads come early, and the order."""


def anneal(
    problem: LatencyProblem,
    starts: Iterable[Sequence[int]],
    target: float,
    deadline: float,
    seed: int,
    moves: float = inf,
) -> list[int]:
    """Anneal `starts` until `target`, `deadline`, or for about `moves`; return the best order.

    Raises ValueError where the values of an op do not fit the capacity.
    """
    distinct = [list(order) for order in dict.fromkeys(map(tuple, starts))]
    everyone = sorted((problem.seconds(o, a), a, o) for o in distinct for a in problem.aheads)
    value, _, best = everyone[0]
    size = max(len(problem), 1)
    starts_kept = max(min(STARTS, STARTED_OPS // size), 1)
    contenders = everyone[: starts_kept * len(problem.aheads)]
    heat = value / size
    length = FIRST_ROUND
    target *= 1 + ROUNDING
    while value > target and moves > 0 and len(problem) > 2:
        cooling = Cooling(HOT * heat, COLD * heat, length)
        for place, contender in enumerate(contenders):
            if value <= target or moves <= 0 or monotonic() > deadline:
                return best
            _, ahead, order = contender
            limit = _share(deadline, len(contenders) - place)
            found, seconds = problem.timeline(ahead).anneal(
                order, cooling, seed + length + place, target, limit
            )
            moves -= length
            contenders[place] = min(contender, (seconds, ahead, found))
            value, best = min((value, best), (seconds, found))
        contenders = sorted(contenders)[: (len(contenders) + 1) // 2]
        length *= 2
    return best


def _share(deadline: float, contenders: int) -> float:
    """Return when the first of some contenders ends; the last one may use up all time."""
    now = monotonic()
    return now + (deadline - now) / contenders
