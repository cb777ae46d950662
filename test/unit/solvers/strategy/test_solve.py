"""The whole solver against enumeration."""

from __future__ import annotations

from math import inf, isinf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.generators.small_strategies import brute_force, random_problem
from braid.solvers.strategy import (
    InfeasibleAssignment,
    ProblemBuilder,
    StrategyProblem,
    evaluate,
    greedy,
    solve,
)


def _agrees_with_enumeration(problem: StrategyProblem) -> None:
    best = brute_force(problem)
    if isinf(best):
        with pytest.raises(InfeasibleAssignment):
            solve(problem, time_limit=20)
        return
    solution = solve(problem, time_limit=20)
    assert solution.proven and solution.gap == 0
    assert solution.cost == pytest.approx(best, rel=1e-8, abs=1e-12)
    assert evaluate(problem, solution.assignment) == solution.cost


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    nodes=st.integers(1, 7),
    density=st.sampled_from([0.3, 0.7, 1.5]),
    forbidden=st.sampled_from([0.0, 0.1, 0.3, 0.5]),
    integral=st.booleans(),
    memory=st.booleans(),
)
def test_equals_brute_force(
    seed: int, nodes: int, density: float, forbidden: float, integral: bool, memory: bool
) -> None:
    _agrees_with_enumeration(
        random_problem(
            seed,
            nodes=nodes,
            density=density,
            forbidden=forbidden,
            integral=integral,
            memory=memory,
        )
    )


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_dense_problems_with_a_memory_limit(seed: int) -> None:
    _agrees_with_enumeration(
        random_problem(seed, nodes=6, strategies=4, density=2.0, forbidden=0.05, memory=True)
    )


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), memory=st.booleans())
def test_greedy_is_feasible_and_bounded(seed: int, memory: bool) -> None:
    problem = random_problem(seed, forbidden=0.1, memory=memory)
    best = brute_force(problem)
    try:
        solution = greedy(problem)
    except InfeasibleAssignment:
        return  # greedy may give up where an assignment exists, but never invents one
    assert solution.lower_bound - 1e-9 <= best <= solution.cost
    assert evaluate(problem, solution.assignment) == solution.cost


def test_same_seed_same_answer() -> None:
    problem = random_problem(7, nodes=40, strategies=5, density=0.1, forbidden=0.05)
    first, second = (solve(problem, time_limit=20, seed=3) for _ in range(2))
    assert first.assignment == second.assignment


def test_reports_why_memory_is_infeasible() -> None:
    builder = ProblemBuilder()
    builder.add_node([1, 2], usage=[5, 4], live=(0, 3))
    builder.add_node([1, 2], usage=[9, 7], live=(2, 5))
    with pytest.raises(InfeasibleAssignment, match=r"at time 2 .* by 1"):
        solve(builder.build(memory_limit=10))


def test_reports_which_node_is_infeasible() -> None:
    builder = ProblemBuilder()
    u, v = builder.add_node([0, 0]), builder.add_node([0, 0])
    builder.add_edge(u, v, [[inf, inf], [inf, inf]])
    with pytest.raises(InfeasibleAssignment, match="node 0"):
        solve(builder.build())


def test_memory_limit_is_respected_exactly() -> None:
    """Three units each, ten allowed: one of four overlapping nodes must take its small form."""
    builder = ProblemBuilder()
    for saving in (5, 7, 3, 9):
        builder.add_node([0, saving], usage=[3, 1], live=(0, 1))
    assert solve(builder.build(memory_limit=10)).cost == 3
    assert solve(builder.build(memory_limit=9)).cost == 8
    assert solve(builder.build(memory_limit=12)).cost == 0


def test_empty_problem() -> None:
    solution = solve(ProblemBuilder().build())
    assert (solution.cost, solution.proven, solution.assignment) == (0, True, ())


@pytest.mark.parametrize(
    "costs", [[], [[1.0]], [np.nan], [-np.inf]], ids=["empty", "matrix", "nan", "minus-inf"]
)
def test_rejects_malformed_node_costs(costs: list[float]) -> None:
    with pytest.raises(ValueError, match="node 0"):
        ProblemBuilder().add_node(costs)


def test_rejects_malformed_edges_and_usages() -> None:
    builder = ProblemBuilder()
    u, v = builder.add_node([0, 1]), builder.add_node([0, 1, 2])
    with pytest.raises(ValueError, match=r"expected \(2, 3\)"):
        builder.add_edge(u, v, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="does not exist"):
        builder.add_edge(u, 9, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="non-negative integers"):
        builder.add_node([0, 1], usage=[1.5, 2])
    with pytest.raises(ValueError, match="one strategy index"):
        evaluate(builder.build(), [0, 3])
