"""The first schedule: the best of several orders and eviction rules."""

from collections.abc import Iterable, Sequence
from time import monotonic

from braid.solvers.rematerialization.construct import EvictionRule, construct
from braid.solvers.rematerialization.problem import Problem
from braid.solvers.rematerialization.prune import prune
from braid.solvers.rematerialization.simulate import simulate

RULES = tuple(EvictionRule(size, reach) for size in (1.0, 0.5) for reach in (1.0, 0.0, 0.5, 2.0))
"""Eviction rules that are tried one after the other; none is best everywhere."""


def first_schedule(
    problem: Problem, budget: int, orders: Iterable[Sequence[int]], deadline: float
) -> tuple[int, ...] | None:
    """Return the shortest sequence within `budget` that the heuristics find, or None.

    Stops at the first order that fits without recomputation, and after `deadline` (a time of
    `time.monotonic`) as soon as something was found.
    """
    best: tuple[float, tuple[int, ...]] | None = None
    for order in dict.fromkeys(tuple(order) for order in orders):
        if simulate(problem, order).peak <= budget:
            return order
        for rule in RULES:
            if best is not None and monotonic() > deadline:
                return best[1]
            found = construct(problem, order, budget, rule)
            if found is not None:
                found = prune(problem, found, budget)
                duration = simulate(problem, found).duration
                if best is None or duration < best[0]:
                    best = duration, found
    return None if best is None else best[1]
