"""The searches behind hard instances: exact, neighbourhoods, structured generators."""

from __future__ import annotations

import time
from itertools import combinations
from math import inf, isinf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.generators.layout_graphs import layout_problem
from benchmarks.generators.sharding_graphs import sharding_problem
from benchmarks.generators.small_strategies import brute_force, random_problem
from braid.solvers.deadline import Deadline
from braid.solvers.strategy import (
    InfeasibleAssignment,
    ProblemBuilder,
    evaluate,
    greedy,
    minimize,
    solve,
)
from braid.solvers.strategy.exact import solve_exactly
from braid.solvers.strategy.minimize import Limits, Minimizer
from braid.solvers.strategy.neighbourhood import NeighbourhoodSearch
from braid.solvers.strategy.presolve import presolve
from braid.solvers.strategy.problem import Integers
from braid.solvers.strategy.residual import Residual


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), memory=st.booleans(), integral=st.booleans())
def test_exact_search_equals_brute_force(seed: int, memory: bool, integral: bool) -> None:
    problem = random_problem(seed, nodes=5, density=1.5, memory=memory, integral=integral)
    residual = Residual.of(problem)
    try:
        presolve(residual)
    except InfeasibleAssignment:
        return
    result = solve_exactly(
        residual,
        deadline=Deadline.after(10),
        workers=1,
        seed=0,
        cutoff=inf,
        tolerance=1e-9 if not integral else 0.5,
    )
    best = brute_force(problem)
    if isinf(best):
        assert result.choice is None and result.bound == inf
        return
    assert result.choice is not None
    assert evaluate(problem, residual.complete(result.choice)) == pytest.approx(best, rel=1e-6)
    assert result.bound == pytest.approx(best, rel=1e-6) and result.bound <= best + 1e-9


def _add_clique(builders: list[ProblemBuilder], rng: np.random.Generator, fraction: float) -> None:
    nodes = [rng.integers(0, 8, 3).astype(float) for _ in range(4)]
    nodes[0] += fraction
    edges = [(i, j, rng.integers(0, 8, (3, 3))) for i, j in combinations(range(4), 2)]
    for builder in builders:
        first = min(builder.add_node(costs) for costs in nodes)
        for i, j, costs in edges:
            builder.add_edge(first + i, first + j, costs)


@pytest.mark.parametrize("seed", [180, 238])
def test_only_the_sum_of_parts_may_be_integral(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # As where what has moved along an edge is left on both sides of it: 0.3 more, 0.7 more.
    monkeypatch.setattr(minimize, "TABLE_LIMIT", 0)
    rng = np.random.default_rng(seed)
    whole, *parts = (ProblemBuilder() for _ in range(3))
    for part, fraction in zip(parts, (0.3, 0.7), strict=True):
        _add_clique([whole, part], rng, fraction)
    residual = Residual.of(whole.build())
    residual.integral = True
    search = Minimizer(residual, Limits(Deadline.after(20), 1, np.random.default_rng(0)))
    search.run()
    assert search.cost == pytest.approx(sum(brute_force(part.build()) for part in parts))
    assert search.proven


def test_neighbourhoods_improve_and_keep_the_books() -> None:
    problem = sharding_problem(150, seed=1, slack=1.2)
    start = greedy(problem)
    residual = Residual.of(problem)
    search = NeighbourhoodSearch(
        residual, np.array(start.assignment), start.cost, np.random.default_rng(0)
    )

    def reoptimize(part: Residual, current: Integers, deadline: Deadline) -> tuple[Integers, bool]:
        limits = Limits(deadline, 1, np.random.default_rng(0), depth=1)
        inner = Minimizer(part, limits, current, part.cost_of(current))
        inner.run()
        assert inner.choice is not None
        return inner.choice, inner.proven

    search.run(reoptimize, deadline=Deadline.after(20), idle=5, goal=-inf)
    assert search.cost < start.cost
    assert search.cost == pytest.approx(evaluate(problem, search.choice))


def test_layout_problems_are_solved_with_proof() -> None:
    problem = layout_problem(150, seed=3)
    solution = solve(problem, time_limit=30)
    assert solution.proven
    assert evaluate(problem, solution.assignment) == solution.cost
    assert solution.cost <= greedy(problem).cost


def test_sharding_problems_get_an_answer_and_a_bound_in_time() -> None:
    problem = sharding_problem(300, seed=2)
    began = time.monotonic()
    solution = solve(problem, time_limit=5)
    assert time.monotonic() - began < 60
    assert solution.lower_bound <= solution.cost
    assert evaluate(problem, solution.assignment) == solution.cost
    assert solution.gap < 0.2
