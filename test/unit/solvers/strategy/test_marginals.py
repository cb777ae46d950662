"""Min-marginals against enumeration."""

import itertools
from math import inf, isinf

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.generators.small_strategies import brute_force, random_problem
from braid.solvers.strategy import evaluate, solve
from braid.solvers.strategy.marginals import min_marginals


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_marginals_are_the_least_costs_with_one_node_held(seed: int) -> None:
    problem = random_problem(seed, nodes=5, forbidden=0.1)
    assume(not isinf(brute_force(problem)))
    solution = solve(problem)
    nodes = range(problem.num_nodes)
    every = list(itertools.product(*(range(len(costs)) for costs in problem.node_costs)))
    marginals = min_marginals(problem, solution.assignment, nodes, time_limit=60)
    for node, found in zip(nodes, marginals, strict=True):
        assert found.reoptimized
        for strategy, cost in enumerate(found.costs):
            held = [evaluate(problem, a) for a in every if a[node] == strategy]
            assert cost == pytest.approx(min(held, default=inf))


def test_without_time_the_other_nodes_stay() -> None:
    problem = random_problem(1, nodes=4, forbidden=0.0)
    solution = solve(problem)
    (found,) = min_marginals(problem, solution.assignment, [0], time_limit=0)
    expected = [
        evaluate(problem, (strategy, *solution.assignment[1:]))
        for strategy in range(len(problem.node_costs[0]))
    ]
    assert list(found.costs) == pytest.approx(expected)
    assert found.reoptimized == (len(expected) == 1)
