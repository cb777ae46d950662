"""List scheduling and neighbourhoods of orders on a chip with little memory."""

from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.ordering import Graph, LatencyProblem, Stage, baselines
from braid.solvers.ordering.latency_list import list_orders, post_order
from braid.solvers.ordering.latency_neighbourhood import neighbourhood_search
from braid.solvers.ordering.latency_timeline import Timeline
from braid.solvers.ordering.residency_plan import AHEAD
from test.unit.solvers.ordering.chips import chip, layered_chip

seeds = st.integers(0, 1 << 30)


@given(seeds, st.integers(2, 60))
def test_a_timeline_is_the_schedule_of_its_order(seed: int, size: int) -> None:
    problem = chip(Random(seed), size)
    for order in baselines(problem).values():
        for ahead in (0, 3, AHEAD):
            assert Timeline(problem, order, ahead).value == problem.seconds(order, ahead)


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(4, 120))
def test_changed_windows_are_undone_or_in_place(seed: int, size: int) -> None:
    random = Random(seed)
    problem = chip(random, size)
    ahead = random.choice((0, 3, AHEAD))
    timeline = Timeline(problem, range(size), ahead)
    for _ in range(10):
        before, value = timeline.order.copy(), timeline.value
        begin = random.randrange(size - 1)
        ops = before[begin : begin + 2][::-1]
        if ops[1] in problem.graph.predecessors[ops[0]]:
            continue
        if timeline.change(begin, ops):
            assert timeline.order == [*before[:begin], *ops, *before[begin + 2 :]]
            assert timeline.value <= value
        else:
            assert timeline.order == before
    timeline.reset(timeline.order)
    assert timeline.value == problem.seconds(timeline.order, ahead)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 80))
def test_orders_are_orders_and_never_worse(seed: int, size: int) -> None:
    problem = chip(Random(seed), size)
    for order in list_orders(problem, inf):
        assert problem.graph.is_order(order)
    start = list(range(size))
    found = neighbourhood_search(problem, start, 0.0, inf, seed, 200)
    assert problem.graph.is_order(found)
    assert problem.evaluate(found) <= problem.evaluate(start)
    assert found == neighbourhood_search(problem, start, 0.0, inf, seed, 200)


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


def test_neighbourhoods_end_at_the_target() -> None:
    problem = LatencyProblem(Graph.from_edges(3, []), ((Stage(0, 1.0),),) * 3)
    start = [0, 1, 2]
    assert neighbourhood_search(problem, start, 3.0, inf, 0, 10**9) is start


def test_an_op_that_does_not_fit_has_no_timeline() -> None:
    problem = chip(Random(1), 6)
    traffic = problem.traffic
    assert traffic is not None
    small = LatencyProblem(problem.graph, problem.stages, type(traffic)(traffic.values, 1, 0, 3))
    with pytest.raises(ValueError, match="does not fit 1 bytes"):
        Timeline(small, range(6), AHEAD)
