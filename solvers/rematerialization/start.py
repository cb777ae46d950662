"""The first schedule: the best of several orders and eviction rules."""

from collections.abc import Iterable, Sequence

from ortools.sat.python import cp_model

from braid.solvers.deadline import Deadline, OutOfTime
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
    enough: Deadline,
    give_up: Deadline,
    fixed_order: bool = False,
) -> tuple[int, ...] | None:
    """Return the shortest sequence within `budget` that the heuristics find, or None.

    An order that fits without recomputation is the answer. Otherwise the orders are tried in turn;
    the search ends at `enough` with a result, and at `give_up` in any case.
    """
    distinct: dict[tuple[int, ...], None] = {}
    for order in orders:
        if simulate(problem, order).peak <= budget:
            return tuple(order)
        distinct[tuple(order)] = None
        if give_up.passed:
            break
    best: tuple[float, tuple[int, ...]] | None = None
    for order in distinct:
        for rule in RULES:
            if (give_up if best is None else enough).passed:
                return None if best is None else best[1]
            found = construct(problem, order, budget, rule, deadline=give_up)
            if found is None or (best and simulate(problem, found).duration > 2 * best[0]):
                continue
            until = give_up.share(0.3)
            found = prune(problem, found, budget, fixed_order=fixed_order, deadline=until)
            duration = simulate(problem, found).duration
            if best is None or duration < best[0]:
                best = duration, found
    return None if best is None else best[1]


def find_schedule(
    problem: Problem, budget: int, deadline: Deadline, seed: int
) -> tuple[int, ...] | None:
    """Search for any schedule within `budget` where the heuristics found none.

    Solves the stage matrix of the given order, for tiny graphs twice that many executions in any
    order; graphs whose matrix is too large are not searched.
    """
    order = problem.required
    if len(order) ** 2 > 4 * _PLACES:
        return None
    stages = with_recomputation(problem, order, len(order), range(len(order)))
    if len(stages.ops) > _PLACES:
        return None
    tiny = every_schedule(problem, order, 2 * len(order) + 1)
    for candidates in (stages, tiny) if len(tiny.ops) <= 400 else (stages,):
        try:
            model = SelectionModel(problem, candidates.ops, budget, deadline)
        except OutOfTime:
            return None
        model.minimize(0.0)
        solver = cp_model.CpSolver()
        limits = Limits(deadline.share(0.5).remaining, seed=seed)
        if run_cp_sat(solver, model.cp, limits).solver is not None:
            selected = model.selected(solver)
            return prune(problem, selected, budget, fixed_order=False, deadline=deadline)
    return None
