"""List scheduling and annealing of orders on a chip with little memory."""

import pickle
from math import inf, isclose
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.ordering import Graph, LatencyProblem, UnitStage, baselines
from braid.solvers.ordering.latency_annealing import anneal
from braid.solvers.ordering.latency_list import list_orders, post_order
from braid.solvers.ordering.latency_timeline import Cooling
from braid.solvers.ordering.residency_plan import AHEADS
from test.unit.solvers.ordering.chips import chip, layered_chip
from test.unit.solvers.ordering.issued import issued_seconds

seeds = st.integers(0, 1 << 30)


@given(seeds, st.integers(2, 60))
def test_seconds_are_those_of_what_is_issued(seed: int, size: int) -> None:
    """The C code does what `Residency` issues."""
    random = Random(seed)
    layers = random.random() < 0.3
    problem = layered_chip(random, size // 10 + 1, 4) if layers else chip(random, size)
    for order in baselines(problem).values():
        for ahead in (3, *AHEADS):
            assert isclose(problem.seconds(order, ahead), issued_seconds(problem, order, ahead))


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(3, 200))
def test_annealing_is_never_worse_and_says_what_it_found(seed: int, size: int) -> None:
    random = Random(seed)
    problem = chip(random, size)
    start = list(range(size))
    timeline = problem.timeline(random.choice((3, *AHEADS)))
    cooling = Cooling(random.choice((0.0, 5.0)), 0.1, 300)
    found, value = timeline.anneal(start, cooling, seed, 0.0, inf)
    assert problem.graph.is_order(found)
    assert value == timeline.seconds(found) <= timeline.seconds(start)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 80))
def test_orders_are_orders_and_never_worse(seed: int, size: int) -> None:
    problem = chip(Random(seed), size)
    for order in list_orders(problem, inf):
        assert problem.graph.is_order(order)
    start = list(range(size))
    found = anneal(problem, [start], 0.0, inf, seed, 200)
    assert problem.graph.is_order(found)
    assert problem.evaluate(found) <= problem.evaluate(start)
    assert found == anneal(problem, [start], 0.0, inf, seed, 200)


def test_layers_wait_for_the_stores_and_loads_between_them() -> None:
    """Three layers of two: the work of each, and a store and a load between layers."""
    problem = layered_chip(Random(3), 3, 2)
    work = sum(stage.duration for own in problem.stages for stage in own)
    assert problem.lower_bound() >= work + 2 * (3.0 + 1.0) + 3.0
    assert problem.lower_bound() <= problem.evaluate(range(6))


def test_no_order_is_listed_past_the_deadline() -> None:
    assert not list(list_orders(chip(Random(1), 6), -inf))


def test_post_order_makes_what_is_needed_late() -> None:
    graph = Graph.from_edges(5, [(0, 2), (1, 3), (2, 4), (3, 4)])
    assert post_order(graph) == [0, 2, 1, 3, 4]


def test_annealing_ends_at_the_target() -> None:
    problem = LatencyProblem(Graph.from_edges(3, []), ((UnitStage(0, 1.0),),) * 3)
    assert anneal(problem, [[0, 1, 2]], 3.0, inf, 0) == [0, 1, 2]


def test_annealing_finds_the_least() -> None:
    """Two units that run side by side if the op that the long one needs is issued first."""
    stages = (*((UnitStage(0, 1.0),),) * 8, (UnitStage(1, 8.0),))
    problem = LatencyProblem(Graph.from_edges(9, [(7, 8)]), stages)
    assert problem.evaluate(range(9)) == 16.0
    found = anneal(problem, [range(9)], 0.0, inf, 0, 2000)
    assert problem.evaluate(found) == 9.0


def test_no_move_is_made_past_the_deadline() -> None:
    problem = chip(Random(1), 40)
    start = list(range(40))
    assert anneal(problem, [start], 0.0, -inf, 0) == start


def test_a_problem_goes_to_another_process() -> None:
    problem = chip(Random(1), 20)
    value = problem.evaluate(range(20))
    assert pickle.loads(pickle.dumps(problem)).evaluate(range(20)) == value


def test_an_op_that_does_not_fit_has_no_schedule() -> None:
    problem = chip(Random(1), 6)
    traffic = problem.traffic
    assert traffic is not None
    small = LatencyProblem(problem.graph, problem.stages, type(traffic)(traffic.values, 1, 0, 3))
    with pytest.raises(ValueError, match="does not fit 1 bytes"):
        small.seconds(range(6), max(AHEADS))
