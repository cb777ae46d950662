"""The first schedule: the best of several orders and eviction rules."""

from collections.abc import Iterable, Sequence
from time import monotonic

from ortools.sat.python import cp_model

from braid.solvers.rematerialization.construct import EvictionRule, construct
from braid.solvers.rematerialization.cp_sat import Limits, run_cp_sat
from braid.solvers.rematerialization.neighbourhoods import every_schedule, with_recomputation
from braid.solvers.rematerialization.problem import Problem
from braid.solvers.rematerialization.prune import prune
from braid.solvers.rematerialization.selection import SelectionModel
from braid.solvers.rematerialization.simulate import simulate

RULES = tuple(EvictionRule(size, reach) for size in (1.0, 0.5) for reach in (1.0, 0.0, 0.5, 2.0))
"""Eviction rules that are tried one after the other; none is best everywhere."""

_PLACES = 6000
"""Largest stage matrix that is searched for a feasible schedule."""


def first_schedule(
    problem: Problem,
    budget: int,
    orders: Iterable[Sequence[int]],
    *,
    enough: float,
    give_up: float,
    fixed_order: bool = False,
) -> tuple[int, ...] | None:
    """Return the shortest sequence within `budget` that the heuristics find, or None.

    Stops at the first order that fits without recomputation; with what it has at the time `enough`,
    and with or without anything at the time `give_up` (both of `time.monotonic`).
    """
    best: tuple[float, tuple[int, ...]] | None = None
    for order in dict.fromkeys(tuple(order) for order in orders):
        if simulate(problem, order).peak <= budget:
            return order
        for rule in RULES:
            if monotonic() > (give_up if best is None else enough):
                return None if best is None else best[1]
            found = construct(problem, order, budget, rule)
            if found is not None:
                found = prune(problem, found, budget, fixed_order=fixed_order)
                duration = simulate(problem, found).duration
                if best is None or duration < best[0]:
                    best = duration, found
    return None if best is None else best[1]


def find_schedule(
    problem: Problem, budget: int, seconds: float, seed: int
) -> tuple[int, ...] | None:
    """Search for any schedule within `budget` where the heuristics found none.

    Solves the stage matrix of the given order, for tiny graphs twice that many executions in any
    order; graphs whose matrix is too large are not searched.
    """
    order = problem.required
    stages = with_recomputation(problem, order, len(order), range(len(order)))
    if len(stages.ops) > _PLACES:
        return None
    tiny = every_schedule(problem, order, 2 * len(order) + 1)
    for candidates in (stages, tiny) if len(tiny.ops) <= 400 else (stages,):
        model = SelectionModel(problem, candidates.ops, budget)
        model.minimize(0.0)
        solver = cp_model.CpSolver()
        if run_cp_sat(solver, model.cp, Limits(seconds / 2, seed=seed)).solver is not None:
            return prune(problem, model.selected(solver), budget, fixed_order=False)
    return None
