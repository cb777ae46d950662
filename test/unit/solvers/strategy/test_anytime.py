"""More time never gives worse: measured on a clock that ticks when it is looked at."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from time import monotonic

import numpy as np
import pytest

from benchmarks.generators.layout_graphs import layout_problem
from benchmarks.generators.planted_strategies import planted_strategies
from braid.solvers import deadline
from braid.solvers.deadline import Deadline
from braid.solvers.strategy import evaluate, minimize, solve
from braid.solvers.strategy.minimize import Limits, Minimizer
from braid.solvers.strategy.residual import Residual


def cost_after(monkeypatch: pytest.MonkeyPatch, seed: int, looks: int) -> float:
    """Return the cost after so many looks at the clock."""
    problem = planted_strategies(80, seed, memory=True)
    monkeypatch.setattr(minimize, "_ANNEALINGS", 0)  # C code looks at another clock
    clock = count()
    monkeypatch.setattr(deadline, "monotonic", lambda: 1e-3 * next(clock))
    limits = Limits(Deadline.after(1e-3 * looks), 1, np.random.default_rng(0), exact_cells=0)
    search = Minimizer(Residual.of(problem.problem), limits)
    search.run()
    assert search.bound <= problem.optimum <= search.cost
    if search.choice is not None:
        choice = search.choice[: problem.problem.num_nodes]
        assert evaluate(problem.problem, choice) == search.cost
    return search.cost


@pytest.mark.parametrize("seed", range(3))
def test_a_later_deadline_continues_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    costs = [cost_after(monkeypatch, seed, looks) for looks in (300, 600, 1200, 2400)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < np.inf


@pytest.mark.parametrize("memory", [False, True])
def test_a_planted_optimum_is_nearly_reached(memory: bool) -> None:
    planted = planted_strategies(250, 1, memory=memory)
    assert evaluate(planted.problem, planted.assignment) == planted.optimum
    solution = solve(planted.problem, time_limit=20)
    assert solution.lower_bound <= planted.optimum <= solution.cost <= 1.02 * planted.optimum


def test_a_limit_holds_while_the_problem_is_read_and_reduced() -> None:
    problem = planted_strategies(6000, 1, memory=True).problem
    begin = monotonic()
    with suppress(TimeoutError):
        solve(problem, time_limit=1.0)
    assert monotonic() - begin < 1.05 * 1.0 + 2.0, "twice the time that is allowed: others run"


def test_there_is_an_answer_without_time_where_all_choices_are_allowed() -> None:
    problem = layout_problem(300, seed=1)
    solution = solve(problem, time_limit=0.0)
    assert solution.cost == evaluate(problem, solution.assignment) < np.inf
    assert solution.lower_bound <= solve(problem, time_limit=20.0).cost <= solution.cost


@pytest.mark.parametrize("time_limit", [0.0, 1e-9])
@pytest.mark.parametrize("memory", [False, True])
def test_there_is_a_bound_without_time_for_a_search(time_limit: float, memory: bool) -> None:
    planted = planted_strategies(40, 2, memory=memory)
    with suppress(TimeoutError):  # where the first choice does not fit into the memory
        solution = solve(planted.problem, time_limit=time_limit)
        assert 0 <= solution.lower_bound <= planted.optimum <= solution.cost
        assert np.isfinite(solution.gap)
