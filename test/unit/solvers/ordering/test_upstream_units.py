"""What a unit cannot have done yet because another one has not fed it: no order is faster."""

from itertools import permutations
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.ordering import Graph, LatencyProblem, Traffic, UnitStage, Value
from braid.solvers.ordering.upstream_units import Flags, Side, upstream_unit_bound


def fastest(ops: Side, upstream: Side, waits: Flags) -> float:
    """Return the makespan of the best orders on both machines, tried one by one."""
    best = float("inf")
    for fed in permutations(range(len(upstream.heads))):
        ends, now = np.zeros(len(fed)), 0.0
        for op_before in fed:
            now = max(now, float(upstream.heads[op_before])) + float(upstream.seconds[op_before])
            ends[op_before] = now
        ready = np.maximum(ops.heads, (ends * waits).max(axis=1, initial=0.0))
        for order in permutations(range(len(ready))):
            now = end = 0.0
            for op in order:
                now = max(now, float(ready[op])) + float(ops.seconds[op])
                end = max(end, now + float(ops.tails[op]))
            best = min(best, end)
    return best


def side(random: Random, count: int, latest: int) -> Side:
    rows = [[float(random.randint(0, most)) for _ in range(count)] for most in (latest, 6, 6)]
    return Side(*(np.array(row) for row in rows))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 4), st.integers(1, 4))
def test_no_schedule_is_below_the_bound(seed: int, count: int, fed: int) -> None:
    random = Random(seed)
    ops, upstream = side(random, count, 12), side(random, fed, 6)
    waits = np.array([[random.random() < 0.5 for _ in range(fed)] for _ in range(count)])
    assert upstream_unit_bound(ops, upstream, waits, 0.0) <= fastest(ops, upstream, waits) * (
        1 + 1e-9
    )


def grouped(groups: int) -> LatencyProblem:
    """Return groups of two loads of 4 seconds: each feeds an op of 1, and both of these one of
    9."""
    edges = [(3 * group + part, 3 * group + 2) for group in range(groups) for part in range(2)]
    graph = Graph.from_edges(3 * groups, edges)
    values = tuple(Value(1, None, (op,), 4.0) for op in range(3 * groups) if op % 3 < 2)
    stages = tuple((UnitStage(1, 9.0 if op % 3 == 2 else 1.0),) for op in range(3 * groups))
    return LatencyProblem(graph, stages, Traffic(values, 100, 0, 2))


def test_a_unit_waits_for_what_feeds_it() -> None:
    """By 9 seconds, when the first op of 9 may start, no more than 9 of 16 are loaded."""
    problem = grouped(2)
    assert problem.evaluate(range(6)) == 29.0
    assert problem.bounds.quick == 26.0
    assert 28.7 < problem.lower_bound() <= 9.0 + (22.0 - 9.0 / 4.0)
