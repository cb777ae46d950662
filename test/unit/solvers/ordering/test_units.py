"""Least makespans with several units of a kind, one that loads and stores, and little memory.

Against brute force over all orders, with schedules that this file makes by itself.
"""

from collections.abc import Callable, Iterator
from itertools import product
from math import inf
from random import Random

import pytest

from braid.solvers.ordering import Graph, LatencyProblem, UnitStage, all_orders, search
from braid.solvers.ordering.latency_ideals import BranchAndBound
from braid.solvers.ordering.latency_search import improve_latency
from test.unit.solvers.ordering.chips import chip
from test.unit.solvers.ordering.issued import issued_seconds

QUICK, MANY = 500, 10_000
ROUNDING = 1e-9


def computing(random: Random, most_stages: int) -> LatencyProblem:
    """Ops of a few stages on up to three kinds of units, of which there are up to three each."""
    size = random.randint(1, 6)
    edges = {(a, b) for b in range(size) for a in range(b) if random.random() < 0.3}
    counts = tuple(random.randint(1, 3) for _ in range(random.randint(1, 3)))
    stages = tuple(
        tuple(
            UnitStage(
                random.randrange(len(counts)), float(random.randint(0, 9)), random.random() < 0.8
            )
            for _ in range(random.randint(1, most_stages))
        )
        for _ in range(size)
    )
    return LatencyProblem(Graph.from_edges(size, edges), stages, counts=counts)


def schedules(problem: LatencyProblem, order: list[int]) -> Iterator[float]:
    """When the order ends, for each way to choose units for its stages."""
    own = [(op, stage) for op in order for stage in problem.stages[op]]
    units = [range(problem.counts[stage.unit]) for _, stage in own]
    for chosen in product(*units):
        free: dict[tuple[int, int], float] = {}
        ends: dict[int, float] = {}
        left = iter(chosen)
        for op in order:
            ready = max((ends[before] for before in problem.graph.predecessors[op]), default=0.0)
            end = 0.0
            for stage in problem.stages[op]:
                unit = stage.unit, next(left)
                start = max(end, free.get(unit, 0.0), ready if stage.waits else 0.0)
                free[unit] = end = start + stage.duration
            ends[op] = max(end, ready)
        yield max((*free.values(), *ends.values()), default=0.0)


def check_choices(seed: int) -> None:
    """Check that giving each stage to the unit that is free first loses nothing over all orders."""
    problem = computing(Random(seed), 1)
    if sum(count > 1 for count in problem.counts) and all(s.waits for (s,) in problem.stages):
        best = min(value for o in all_orders(problem.graph) for value in schedules(problem, o))
        found = search(problem, time_limit=10.0)
        assert found.value == pytest.approx(best), seed
        assert found.lower_bound <= best + ROUNDING, seed


def check_computing(seed: int) -> None:
    """Check that the exact search finds the least time, and that no bound is above it."""
    problem = computing(Random(seed), 3)
    least = min(problem.evaluate(order) for order in all_orders(problem.graph))
    assert problem.lower_bound() <= least + ROUNDING, seed
    exact = BranchAndBound(problem, inf, inf)
    assert exact.run() and exact.value == pytest.approx(least), seed
    first = list(range(len(problem)))
    order, bound = improve_latency(problem, first, inf, seed, 0.0)
    assert problem.evaluate(order) == pytest.approx(least), seed
    assert bound <= least + ROUNDING, seed


def check_chip(seed: int) -> None:
    """With little memory: what is issued is what is said, and no bound is above the best."""
    random = Random(seed)
    problem = chip(random, random.randint(2, 6))
    values = [
        issued_seconds(problem, order, ahead)
        for order in all_orders(problem.graph)
        for ahead in problem.aheads
    ]
    least = min(values)
    found = search(problem, time_limit=10.0)
    assert found.value == pytest.approx(least), seed
    assert found.lower_bound <= least + ROUNDING, seed
    assert problem.lower_bound() <= least + ROUNDING, seed
    exact = BranchAndBound(problem, least + 1.0, inf)
    assert exact.run() and exact.value <= least + ROUNDING, seed


@pytest.mark.parametrize("check", [check_choices, check_computing, check_chip])
def test_brute_force(check: Callable[[int], None]) -> None:
    for seed in range(QUICK):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_choices, check_computing, check_chip])
def test_brute_force_over_many(check: Callable[[int], None]) -> None:
    for seed in range(QUICK, QUICK + MANY):
        check(seed)
