"""Every reduction alone keeps the optimum, and the way back finds an assignment of that cost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import inf, isinf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.generators.small_strategies import brute_force, random_problem
from braid.solvers.deadline import NEVER
from braid.solvers.strategy import InfeasibleAssignment, evaluate, reductions
from braid.solvers.strategy.builder import ProblemBuilder
from braid.solvers.strategy.dual import DualAscent
from braid.solvers.strategy.elimination import components, eliminate, elimination_order
from braid.solvers.strategy.fixing import fix_by_bound
from braid.solvers.strategy.presolve import presolve
from braid.solvers.strategy.pricing import ascend
from braid.solvers.strategy.problem import Integers, StrategyProblem
from braid.solvers.strategy.residual import Residual
from braid.solvers.strategy.rows import tighten_rows

Reduction = Callable[[Residual, int], bool]

seeds = st.integers(0, 2**32 - 1)


def _best_left(residual: Residual) -> tuple[float, Integers]:
    """Return the optimum of what is left by enumeration."""
    nodes = sorted(residual.alive)
    best, best_choice = inf, np.zeros(len(residual.costs), dtype=np.int64)
    for strategies in product(*(range(residual.costs[node].size) for node in nodes)):
        choice = np.zeros(len(residual.costs), dtype=np.int64)
        choice[nodes] = strategies
        cost = residual.cost_of(choice)
        if cost < best:
            best, best_choice = cost, choice
    return best, best_choice


def _keeps_optimum(problem: StrategyProblem, residual: Residual) -> None:
    expected = brute_force(problem)
    cost, choice = _best_left(residual)
    assert cost == pytest.approx(expected, rel=1e-9, abs=1e-12)
    if not isinf(expected):
        completed = evaluate(problem, residual.complete(choice))
        assert completed == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "reduction",
    [
        reductions.keep_consistent,
        reductions.drop_separable_edges,
        reductions.settle,
        reductions.contract_leaf,
        reductions.contract_path,
        reductions.contract_determined,
        reductions.drop_dominated,
    ],
    ids=lambda reduction: reduction.__name__,
)
@settings(deadline=None, max_examples=60)
@given(seed=seeds, memory=st.booleans(), density=st.sampled_from([0.2, 0.5, 1.0]))
def test_reduction_keeps_optimum(
    reduction: Reduction, seed: int, memory: bool, density: float
) -> None:
    problem = random_problem(seed, nodes=5, density=density, memory=memory)
    residual = Residual.of(problem)
    try:
        for node in range(problem.num_nodes):
            reductions.keep_consistent(residual, node)
        for node in range(problem.num_nodes):
            if node in residual.alive:
                reduction(residual, node)
    except InfeasibleAssignment:
        assert isinf(brute_force(problem))
        return
    _keeps_optimum(problem, residual)


@settings(deadline=None, max_examples=80)
@given(seed=seeds)
def test_tighten_rows_keeps_optimum(seed: int) -> None:
    problem = random_problem(seed, nodes=6, forbidden=0.05, memory=True)
    residual = Residual.of(problem)
    try:
        tighten_rows(residual)
    except InfeasibleAssignment:
        assert isinf(brute_force(problem))
        return
    _keeps_optimum(problem, residual)


@settings(deadline=None, max_examples=80)
@given(seed=seeds, memory=st.booleans(), integral=st.booleans())
def test_presolve_keeps_optimum(seed: int, memory: bool, integral: bool) -> None:
    problem = random_problem(seed, nodes=6, density=1.0, memory=memory, integral=integral)
    residual = Residual.of(problem)
    try:
        presolve(residual)
    except InfeasibleAssignment:
        assert isinf(brute_force(problem))
        return
    _keeps_optimum(problem, residual)


@settings(deadline=None, max_examples=80)
@given(seed=seeds, density=st.sampled_from([0.3, 1.0, 2.0]))
def test_elimination_is_exact(seed: int, density: float) -> None:
    problem = random_problem(seed, nodes=6, density=density)
    residual = Residual.of(problem)
    try:
        for members in components(residual):
            order = elimination_order(residual, members)
            assert order is not None
            eliminate(residual, order)
    except InfeasibleAssignment:
        assert isinf(brute_force(problem))
        return
    assert not residual.alive
    assert residual.constant == pytest.approx(brute_force(problem))
    choice = residual.complete(np.zeros(problem.num_nodes, dtype=np.int64))
    assert evaluate(problem, choice) == pytest.approx(residual.constant)


@settings(deadline=None, max_examples=80)
@given(seed=seeds, memory=st.booleans())
def test_dual_bound_and_fixing_are_valid(seed: int, memory: bool) -> None:
    """The bound holds; fixing keeps every assignment at the cutoff; sweeps change no cost."""
    problem = random_problem(seed, nodes=6, strategies=4, density=1.0, memory=memory)
    residual = Residual.of(problem)
    try:
        presolve(residual)
    except InfeasibleAssignment:
        return
    best, choice = _best_left(residual)
    dual = DualAscent(residual)
    ascent = ascend(dual, iterations=30, deadline=NEVER, target=best, tolerance=1e-6)
    assert ascent.bound <= best + 1e-6
    assert dual.bound() <= best + 1e-6
    if isinf(best):
        return
    dual.write_back(residual)
    assert residual.cost_of(choice) == pytest.approx(best)
    fix_by_bound(residual, dual, best + 1e-6)
    assert residual.cost_of(choice) == pytest.approx(best)


def test_dual_bound_is_tight_on_trees() -> None:
    rng = np.random.default_rng(5)
    builder = ProblemBuilder()
    for node in range(30):
        builder.add_node(rng.random(3))
        if node:
            builder.add_edge(int(rng.integers(node)), node, rng.random((3, 3)))
    residual = Residual.of(builder.build())
    dual = DualAscent(residual)
    bound = ascend(dual, iterations=200, deadline=NEVER, target=inf, tolerance=0.0).bound
    order = elimination_order(residual, range(30))
    assert order is not None
    eliminate(residual, order)
    assert bound == pytest.approx(residual.constant)


def test_prices_bound_what_memory_costs() -> None:
    """Every node saves a unit for 2; three units must be saved: the priced bound sees all of it."""
    builder = ProblemBuilder()
    for _ in range(6):
        builder.add_node([0, 2], usage=[2, 1], live=(0, 1))
    residual = Residual.of(builder.build(memory_limit=9))
    tighten_rows(residual)
    ascent = ascend(DualAscent(residual), iterations=300, deadline=NEVER, target=6, tolerance=1e-9)
    assert 5.5 <= ascent.bound <= 6 + 1e-9
    assert ascent.prices == pytest.approx([2.0], abs=0.2)


def test_path_contraction_handles_a_thousand_nodes() -> None:
    builder = ProblemBuilder()
    for node in range(1000):
        builder.add_node([node % 3, 1])
        if node:
            builder.add_edge(node - 1, node, [[0, 1], [1, 0]])
    residual = Residual.of(builder.build())
    presolve(residual)
    assert not residual.alive
