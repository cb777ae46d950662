"""What is loaded between ops that share all operands but one: no order avoids it."""

from itertools import permutations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.ordering import Graph, LatencyProblem, Traffic, UnitStage, Value
from braid.solvers.ordering.job_graph import Setup, setups


def grouped_chip(random: Random, size: int, capacity: int) -> LatencyProblem:
    """Ops between a source and a sink that share one operand and have few weights of their own."""
    middle = range(1, size - 1)
    edges = [(0, op) for op in middle] + [(op, size - 1) for op in middle]
    weights = [[op for op in middle if op % 3 == kind] for kind in range(3)]
    values = [Value(6, 0, (*middle,), 4.0, 4.0)]
    values += [Value(1, op, (size - 1,), 1.0, 1.0) for op in middle]
    values += [
        Value(random.randint(2, 4), None, tuple(ops), float(random.randint(1, 5)))
        for ops in weights
        if ops
    ]
    values.append(Value(1, size - 1, (), 1.0, 1.0, output=True))
    units = [random.choice((1, 1, 1, 2)) for _ in range(size)]
    stages = tuple((UnitStage(unit, float(random.randint(1, 4))),) for unit in units)
    return LatencyProblem(
        Graph.from_edges(size, edges), stages, Traffic(tuple(values), capacity, 0, 3)
    )


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(4, 7), st.integers(11, 18))
def test_no_order_is_below_the_bound(seed: int, size: int, capacity: int) -> None:
    problem = grouped_chip(Random(seed), size, capacity)
    orders = filter(problem.graph.is_order, permutations(range(size)))
    assert problem.lower_bound() <= min(map(problem.evaluate, orders)) * (1 + 1e-9)


def weighted(capacity: int) -> LatencyProblem:
    """Four ops of a second between two others, of which two read each of two weights."""
    graph = Graph.from_edges(6, [(0, op) for op in range(1, 5)] + [(op, 5) for op in range(1, 5)])
    values = (
        Value(6, 0, (1, 2, 3, 4)),
        Value(2, None, (1, 2), 5.0),
        Value(2, None, (3, 4), 7.0),
    )
    return LatencyProblem(graph, ((UnitStage(1, 1.0),),) * 6, Traffic(values, capacity, 0, 2))


def test_a_weight_for_which_there_is_no_room_is_waited_for() -> None:
    """The first weight is there after 5 seconds; 4 of work, 5 for the other weight, and the end."""
    assert weighted(9).lower_bound() == 5.0 + 4.0 + 5.0 + 1.0
    assert weighted(9).evaluate(range(6)) == 5.0 + 2.0 + 7.0 + 2.0 + 1.0
    assert weighted(10).lower_bound() <= weighted(10).evaluate(range(6)) == 15.0


def test_setups_are_those_of_groups_without_room() -> None:
    for capacity, expected in ((10, {}), (9, {1: 1, 2: 1, 3: 2, 4: 2})):
        problem = weighted(capacity)
        assert problem.traffic is not None
        found = setups(problem.plain, problem.traffic)
        assert {op: setup.operand for op, setup in found.items()} == expected
    assert Setup(0, 2, 7.0) in found.values()
