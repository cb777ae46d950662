"""Schedules on identical processors: against brute force, and against what is known of them."""

from collections.abc import Sequence
from itertools import product
from math import inf, isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.ordering.graph import Graph, all_orders
from braid.solvers.ordering.processor_search import list_schedules, search_processors
from braid.solvers.ordering.processors import ProcessorProblem


@st.composite
def problems(draw: st.DrawFn, most: int = 6) -> ProcessorProblem:
    size = draw(st.integers(1, most))
    pairs = [(a, b) for b in range(size) for a in range(b)]
    edges = [pair for pair in pairs if draw(st.integers(0, 2)) == 0]
    alone: list[float] = []
    together: list[float] = []
    processors = draw(st.integers(1, 3))
    for _ in range(size):
        seconds = float(draw(st.integers(0, 9)))
        kind = draw(st.sampled_from(["both", "both", "alone", "together"]))
        alone.append(inf if kind == "together" else seconds)
        together.append(inf if kind == "alone" else seconds / processors + draw(st.integers(0, 2)))
    return ProcessorProblem(
        Graph.from_edges(size, edges), tuple(alone), tuple(together), processors
    )


def least_makespan(problem: ProcessorProblem) -> float:
    """Return the least makespan, without the schedules that the search considers.

    Whenever an op ends, every one that is ready may start, or wait for another end.
    """
    sizes = [
        [
            (s, w)
            for s, w in ((problem.alone[op], 1), (problem.together[op], problem.processors))
            if isfinite(s)
        ]
        for op in range(len(problem))
    ]
    best = inf
    for modes in product(*sizes):
        best = min(best, _rigid(problem, modes, best))
    return best


def _rigid(problem: ProcessorProblem, modes: tuple[tuple[float, int], ...], best: float) -> float:
    """Return the least makespan of ops of given width, by trying each subset of ready ops."""
    stack: list[tuple[float, frozenset[int], tuple[tuple[float, int], ...]]] = [
        (0.0, frozenset(), ())
    ]
    while stack:
        now, done, running = stack.pop()
        if now >= best:
            continue
        if len(done) == len(problem):
            best = now
            continue
        used = sum(modes[op][1] for _, op in running)
        busy = {op for _, op in running}
        ready = [
            op
            for op in range(len(problem))
            if op not in done and op not in busy and set(problem.graph.predecessors[op]) <= done
        ]
        instant = [op for op in ready if modes[op][0] == 0]
        if instant:
            stack.append((now, done | {instant[0]}, running))
            continue
        for op in ready:
            if used + modes[op][1] <= problem.processors and modes[op][0]:
                stack.append((now, done, (*running, (now + modes[op][0], op))))
        if running:
            end = min(running)[0]
            ended = {op for time, op in running if time == end}
            left = tuple(pair for pair in running if pair[0] > end)
            stack.append((end, done | ended, left))
    return best


@settings(max_examples=40, deadline=None)
@given(problems(5))
def test_the_search_finds_the_least_makespan(problem: ProcessorProblem) -> None:
    check_least(problem)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(problems(4))
def test_ten_thousand(problem: ProcessorProblem) -> None:
    check_least(problem)


def check_least(problem: ProcessorProblem) -> None:
    found = search_processors(problem, time_limit=20.0)
    assert found.value == pytest.approx(least_makespan(problem), abs=1e-6)
    assert found.lower_bound == pytest.approx(found.value, abs=1e-6)


def test_an_op_of_no_time_takes_no_processor() -> None:
    """The second op needs all processors, for no time: the others run side by side all the same."""
    graph = Graph(((), (), (1,)))
    problem = ProcessorProblem(graph, (3.0, inf, 2.0), (2.5, 0.0, 1.0), 2)
    assert search_processors(problem, time_limit=20.0).value == 3.0


@settings(max_examples=80, deadline=None)
@given(problems())
def test_bounds_hold_for_every_order_and_choice(problem: ProcessorProblem) -> None:
    choices = [
        [False] * isfinite(a) + [True] * isfinite(t)
        for a, t in zip(problem.alone, problem.together, strict=True)
    ]
    least = min(
        problem.evaluate((order, wide))
        for order in all_orders(problem.graph)
        for wide in product(*choices)
    )
    assert problem.bounds.value <= least + 1e-9
    assert problem.bounds.critical_path <= least + 1e-9
    assert problem.bounds.work <= least + 1e-9


@settings(max_examples=25, deadline=None)
@given(problems(24))
def test_a_schedule_is_valid_and_no_worse_than_list_scheduling(problem: ProcessorProblem) -> None:
    found = search_processors(problem, time_limit=0.1)
    assert problem.graph.is_order(found.order)
    placed = problem.place((found.order, found.wide))
    seconds = [
        problem.together[op] if found.wide[op] else problem.alone[op] for op in range(len(problem))
    ]
    for op in range(len(problem)):
        for before in problem.graph.predecessors[op]:
            assert placed.starts[before] + seconds[before] <= placed.starts[op] + 1e-9
    taking = [op for op in range(len(problem)) if seconds[op]]
    for op in taking:
        middle = placed.starts[op] + seconds[op] / 2
        beside = [
            other
            for other in taking
            if placed.starts[other] < middle < placed.starts[other] + seconds[other]
        ]
        processors = [placed.processors[other] for other in beside]
        assert len(beside) == 1 if found.wide[op] else len(set(processors)) == len(beside)
    for choice in list_schedules(problem).values():
        assert found.value <= problem.evaluate(choice) + 1e-9
    assert found.lower_bound <= found.value


def test_the_bound_of_intervals_sees_more_than_path_and_work() -> None:
    """Three ops between two long ones: two of them must share a processor."""
    edges = [(0, 2), (0, 3), (0, 4), (2, 1), (3, 1), (4, 1)]
    none = (inf,) * 5
    problem = ProcessorProblem(Graph.from_edges(5, edges), (10.0, 10.0, 2.0, 2.0, 2.0), none, 2)
    assert problem.bounds.critical_path == 22.0
    assert problem.bounds.work == 13.0
    assert problem.bounds.value == 23.0
    assert search_processors(problem).value == 24.0


def test_an_op_runs_on_all_processors_where_nothing_is_beside_it() -> None:
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
    problem = ProcessorProblem(Graph.from_edges(4, edges), (4.0,) * 4, (2.5,) * 4, 2)
    found = search_processors(problem)
    assert found.wide == (True, False, False, True)
    assert found.value == 9.0
    assert {found.processors[1], found.processors[2]} == {0, 1}


def test_the_same_seed_gives_the_same_schedule() -> None:
    edges = [(0, op) for op in range(1, 6)] + [(op, 6) for op in range(1, 6)]
    alone = tuple(float(3 + op * 7 % 5) for op in range(7))
    problem = ProcessorProblem(Graph.from_edges(7, edges), alone, (inf,) * 7, 3)
    assert search_processors(problem, seed=5) == search_processors(problem, seed=5)


def test_problems_without_a_meaning() -> None:
    graph = Graph.from_edges(1, [])
    with pytest.raises(ValueError, match="0 processors, expected at least 1"):
        ProcessorProblem(graph, (1.0,), (1.0,), 0)
    with pytest.raises(ValueError, match="2 and 1 durations for 1 ops"):
        ProcessorProblem(graph, (1.0, 1.0), (1.0,), 1)
    with pytest.raises(ValueError, match="or both durations of an op are infinite"):
        ProcessorProblem(graph, (inf,), (inf,), 1)


def started_first(problem: ProcessorProblem, wide: Sequence[bool]) -> list[int]:
    """By looking at every op that is ready: which starts first, then which is most critical."""
    ends: dict[int, float] = {}
    free = [0.0] * problem.processors
    seconds = [t if w else a for w, a, t in zip(wide, problem.alone, problem.together, strict=True)]

    def start(op: int) -> float:
        ready = max((ends[before] for before in problem.graph.predecessors[op]), default=0.0)
        processor = 0.0 if not seconds[op] else max(free) if wide[op] else min(free)
        return max(ready, processor)

    while len(ends) < len(problem):
        ready = [
            op
            for op, before in enumerate(problem.graph.predecessors)
            if op not in ends and all(other in ends for other in before)
        ]
        op = min(ready, key=lambda op: (start(op), -problem.bounds.tails[op], op))
        ends[op] = start(op) + seconds[op]
        if seconds[op] and wide[op]:
            free = [ends[op]] * problem.processors
        elif seconds[op]:
            free[free.index(min(free))] = ends[op]
    return list(ends)


@given(problems(most=12))
def test_greedy_schedules_take_what_can_start_first(problem: ProcessorProblem) -> None:
    for name, (order, wide) in list_schedules(problem).items():
        if name.endswith("-greedy"):
            assert order == started_first(problem, wide)
