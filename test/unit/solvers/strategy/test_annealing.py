"""Annealing: what it returns is feasible, costs no more, and reaches optima of small problems."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from benchmarks.generators.planted_strategies import planted_strategies
from benchmarks.generators.small_strategies import brute_force, random_problem
from braid.solvers.deadline import Deadline
from braid.solvers.strategy import InfeasibleAssignment, evaluate, greedy, solve
from braid.solvers.strategy.annealing import Annealing
from braid.solvers.strategy.residual import Residual


def check(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, nodes=6, forbidden=0.1, memory=bool(seed % 2))
    try:
        start = greedy(problem)
    except InfeasibleAssignment:
        return
    residual = Residual.of(problem)
    prices = rng.random(residual.capacity.size)
    before = start.cost
    choice = np.array(start.assignment)
    for _ in range(2):
        choice = Annealing(residual).run(choice, prices, Deadline.after(5), rng)
        cost = evaluate(problem, choice)
        assert brute_force(problem) <= cost <= before < inf
        before = cost


def test_annealing_only_improves() -> None:
    for seed in range(150):
        check(seed)


@pytest.mark.slow
def test_ten_thousand() -> None:
    for seed in range(10_000):
        check(seed)


def check_repair(seed: int) -> bool:
    """Mend a random choice; what is found is feasible. Returns whether anything was."""
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, nodes=6, forbidden=0.2, memory=bool(seed % 2))
    try:
        residual = Residual.of(problem)
    except InfeasibleAssignment:
        return False
    choice = np.array([int(rng.integers(costs.size)) for costs in residual.costs])
    prices = rng.random(residual.capacity.size)
    found = Annealing(residual).repair(choice, prices, Deadline.after(5), rng)
    if found is None:
        return False
    assert brute_force(problem) <= evaluate(problem, found) < inf
    return True


def test_repair_finds_what_there_is() -> None:
    feasible = [seed for seed in range(120) if brute_force_of(seed) < inf]
    assert len(feasible) > 30
    mended = sum(check_repair(seed) for seed in range(120))
    assert mended >= 0.95 * len(feasible)


def brute_force_of(seed: int) -> float:
    return brute_force(random_problem(seed, nodes=6, forbidden=0.2, memory=bool(seed % 2)))


def test_a_limit_that_binds_everywhere_is_met() -> None:
    planted = planted_strategies(1000, 5, memory=True)
    found = solve(planted.problem, time_limit=30)
    assert evaluate(planted.problem, found.assignment) <= 1.005 * planted.optimum
    assert 0.999 * planted.optimum <= found.lower_bound <= planted.optimum


def test_annealing_comes_close_to_a_planted_optimum() -> None:
    planted = planted_strategies(200, 3)
    start = greedy(planted.problem)
    annealing = Annealing(Residual.of(planted.problem))
    rng = np.random.default_rng(0)
    choice = np.array(start.assignment)
    for _ in range(5):
        choice = annealing.run(choice, np.zeros(0), Deadline.after(20), rng)
    assert evaluate(planted.problem, choice) <= 1.05 * planted.optimum
