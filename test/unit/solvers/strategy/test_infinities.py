"""Infinite costs anywhere: no NaN, no claim that enumeration refutes, infeasibility told apart."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from math import inf, isinf, isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.deadline import Deadline
from braid.solvers.strategy import (
    InfeasibleAssignment,
    ProblemBuilder,
    StrategyProblem,
    greedy,
    minimize,
    solve,
)
from braid.solvers.strategy.dual import DualAscent
from braid.solvers.strategy.exact import solve_exactly
from braid.solvers.strategy.fixing import fix_by_bound
from braid.solvers.strategy.minimize import Limits, Minimizer
from braid.solvers.strategy.residual import Residual


def total(problem: StrategyProblem, choice: tuple[int, ...]) -> float:
    """Return the cost of a choice by its definition; shares no code with the solver."""
    memory = problem.memory
    if memory is not None:
        if memory.limit < 0:
            return inf
        for t in range(int(memory.intervals.max(initial=0))):
            live = [i for i, (start, end) in enumerate(memory.intervals) if start <= t < end]
            if sum(int(memory.usages[i][choice[i]]) for i in live) > memory.limit:
                return inf
    nodes = sum(float(costs[s]) for costs, s in zip(problem.node_costs, choice, strict=True))
    edges = zip(problem.edges.tolist(), problem.edge_costs, strict=True)
    return nodes + sum(float(costs[choice[u], choice[v]]) for (u, v), costs in edges)


def least(problem: StrategyProblem) -> float:
    sizes = (range(costs.size) for costs in problem.node_costs)
    return min((total(problem, choice) for choice in product(*sizes)), default=inf)


def any_infinities(seed: int) -> StrategyProblem:
    """Up to six nodes of one to four strategies; whole rows, columns, edges may be forbidden."""
    rng = np.random.default_rng(seed)
    share = float(rng.choice([0.0, 0.2, 0.5, 0.8]))
    builder = ProblemBuilder()
    count = int(rng.integers(0, 7))
    fractions = rng.random() < 0.5

    def costs(*shape: int) -> np.ndarray:
        values = rng.integers(-4, 9, shape) * (0.1 if fractions else 1.0)
        values[rng.random(shape) < share * rng.random()] = inf
        return values

    sizes = [int(rng.choice([1, 2, 2, 3, 4])) for _ in range(count)]
    for size in sizes:
        start = int(rng.integers(0, 3))
        usage = rng.integers(0, 5, size)
        builder.add_node(costs(size), usage=usage, live=(start, start + int(rng.integers(0, 3))))
    for u, v in product(range(count), repeat=2):
        if u < v and rng.random() < 0.7:
            matrix = costs(sizes[u], sizes[v])
            if rng.random() < share / 2:
                matrix[:, rng.integers(sizes[v])] = inf
            if rng.random() < share / 2:
                matrix[rng.integers(sizes[u])] = inf
            builder.add_edge(u, v, matrix)
    limit = int(rng.integers(-1, 3 * count + 2)) if rng.random() < 0.5 else None
    return builder.build(memory_limit=limit)


def check_solve(seed: int) -> None:
    problem = any_infinities(seed)
    best = least(problem)
    with suppress(InfeasibleAssignment):  # where greedy gives up, though it need not
        assert best - 1e-9 <= greedy(problem).cost < inf
    if isinf(best):
        with pytest.raises(InfeasibleAssignment):
            solve(problem, time_limit=20)
        return
    solution = solve(problem, time_limit=20)
    assert solution.proven
    assert solution.cost == pytest.approx(best, rel=1e-8, abs=1e-9)
    assert solution.cost == pytest.approx(total(problem, solution.assignment), abs=1e-9)
    assert solution.lower_bound <= best + 1e-9


def check_dual(seed: int) -> None:
    """Sweeps, prices, fixing and the exact search, on problems that no reduction has cleaned."""
    problem = any_infinities(seed)
    if problem.memory is not None and problem.memory.limit < 0:
        return
    best = least(problem)
    residual = Residual.of(problem)
    dual = DualAscent(residual)
    for step in range(4):
        with np.errstate(invalid="raise"):
            dual.sweep(forward=step % 2 == 0)
            dual.reprice(np.full(residual.capacity.size, 0.25 * step))
        assert not isnan(dual.bound())
        assert dual.bound() <= best + 1e-9
    try:
        with np.errstate(invalid="raise"):
            dual.write_back(residual)
            fix_by_bound(residual, dual, best + 0.5 if best < inf else 100.0)
    except InfeasibleAssignment:
        assert isinf(best)
    found = solve_exactly(
        residual, deadline=Deadline.after(9), workers=1, seed=0, cutoff=inf, tolerance=1e-6
    )
    assert found.bound <= best + 1e-6
    if found.choice is None:
        assert isinf(best)
    else:
        assert total(problem, tuple(found.choice.tolist())) == pytest.approx(best, abs=1e-5)


def check_without_tables(seed: int) -> None:
    """As `check_solve`, where no component is small enough for dynamic programming."""
    problem = any_infinities(seed)
    best = least(problem)
    try:
        residual = Residual.of(problem)
        limits = Limits(Deadline.after(20), 1, np.random.default_rng(0), exact_cells=1 << 30)
        search = Minimizer(residual, limits)
        search.run()
    except InfeasibleAssignment:
        assert isinf(best)
        return
    assert search.proven
    assert search.cost == pytest.approx(best, abs=1e-8)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_solve(seed: int) -> None:
    check_solve(seed)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1))
def test_bounds_fixing_and_exact_search(seed: int) -> None:
    check_dual(seed)


def test_search_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimize, "TABLE_LIMIT", 0)
    for seed in range(60):
        check_without_tables(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1000 * block, 1000 * (block + 1)):
        check_solve(seed)
    monkeypatch.setattr(minimize, "TABLE_LIMIT", 0)
    for seed in range(1000 * block, 1000 * block + 200):
        check_dual(seed)
        check_without_tables(seed)


def test_a_column_of_infinities() -> None:
    builder = ProblemBuilder()
    a, b, c = (builder.add_node([0, 0]) for _ in range(3))
    builder.add_edge(a, b, [[0, inf], [0, inf]])
    builder.add_edge(b, c, [[3, 1], [2, 5]])
    problem = builder.build()
    dual = DualAscent(Residual.of(problem))
    for _ in range(3):
        dual.sweep(forward=True)
        dual.sweep(forward=False)
    assert dual.bound() == 1
    assert solve(problem).cost == greedy(problem).cost == 1


def test_an_edge_that_forbids_everything() -> None:
    builder = ProblemBuilder()
    a, b = builder.add_node([0, 0]), builder.add_node([0, 0])
    builder.add_edge(a, b, [[inf, inf], [inf, inf]])
    problem = builder.build()
    dual = DualAscent(Residual.of(problem))
    dual.sweep(forward=True)
    assert dual.bound() == inf
    for solver in (solve, greedy):
        with pytest.raises(InfeasibleAssignment):
            solver(problem)
