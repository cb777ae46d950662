"""Annealing: what it returns is feasible, costs no more, and reaches optima of small problems."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from benchmarks.generators.planted_strategies import planted_strategies
from benchmarks.generators.small_strategies import brute_force, random_problem
from braid.solvers.deadline import Deadline
from braid.solvers.strategy import InfeasibleAssignment, evaluate, greedy
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


def test_annealing_comes_close_to_a_planted_optimum() -> None:
    planted = planted_strategies(200, 3)
    start = greedy(planted.problem)
    annealing = Annealing(Residual.of(planted.problem))
    rng = np.random.default_rng(0)
    choice = np.array(start.assignment)
    for _ in range(5):
        choice = annealing.run(choice, np.zeros(0), Deadline.after(20), rng)
    assert evaluate(planted.problem, choice) <= 1.05 * planted.optimum
