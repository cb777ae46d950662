from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers import deadline
from braid.solvers.deadline import Deadline
from braid.solvers.ordering import (
    Graph,
    LatencyProblem,
    MemoryProblem,
    Tensor,
    UnitStage,
    baselines,
    search,
)
from braid.solvers.ordering.memory_annealing import MemoryAnnealer

seeds = st.integers(0, 2**32)


def all_orders(graph: Graph) -> Iterator[tuple[int, ...]]:
    return filter(graph.is_order, permutations(range(len(graph))))


def random_graph(random: Random, size: int) -> Graph:
    density = random.uniform(0.1, 0.8)
    edges = [(i, j) for j in range(size) for i in range(j) if random.random() < density]
    names = list(range(size))
    random.shuffle(names)
    return Graph.from_edges(size, [(names[i], names[j]) for i, j in edges])


def random_memory(random: Random, graph: Graph) -> MemoryProblem:
    tensors = [Tensor(random.randint(0, 9), None, (0,), random.random() < 0.2)]
    for op in range(len(graph)):
        users = list(graph.successors[op])
        half = random.randint(0, len(users))
        for part in (users[:half], users[half:]):
            tensors.append(Tensor(random.randint(0, 20), op, tuple(part), random.random() < 0.1))
    workspace = tuple(random.choice([0, 0, 5]) for _ in range(len(graph)))
    in_place = tuple(
        tuple(t for t, tensor in enumerate(tensors) if op in tensor.consumers)
        if random.random() < 0.5
        else ()
        for op in range(len(graph))
    )
    return MemoryProblem(graph, tuple(tensors), workspace, in_place=in_place)


def random_latency(random: Random, graph: Graph) -> LatencyProblem:
    waits = random.random() < 0.5
    scale = random.choice([1.0, 1e-6])
    return LatencyProblem(
        graph,
        tuple(
            tuple(
                UnitStage(
                    random.randrange(3),
                    random.randint(0, 9) * scale,
                    waits or random.random() < 0.5,
                )
                for _ in range(random.randint(1, 3))
            )
            for _ in range(len(graph))
        ),
    )


def peak(problem: MemoryProblem, order: Sequence[int]) -> int:
    """Return the peak by its definition: the sum of live tensors at every step."""
    place = {op: step for step, op in enumerate(order)}
    highest = problem.base + sum(t.size for t in problem.tensors if t.producer is None)
    workspace = problem.workspace or (0,) * len(order)
    for step, op in enumerate(order):
        live, over = 0, 0
        for index, tensor in enumerate(problem.tensors):
            begin = -1 if tensor.producer is None else place[tensor.producer]
            used = [place[user] for user in tensor.consumers]
            end = max([*used, begin]) if used or tensor.producer is not None else len(order)
            if begin <= step and (tensor.pinned or step <= end):
                live += tensor.size
            may_write = bool(problem.in_place) and index in problem.in_place[op]
            if may_write and op in tensor.consumers and end == step and not tensor.pinned:
                made = sum(t.size for t in problem.tensors if t.producer == op)
                over = max(over, min(tensor.size, made))
        highest = max(highest, problem.base + live + workspace[op] - over)
    return highest


def makespan(problem: LatencyProblem, order: Sequence[int]) -> float:
    """When the last op ends, without traffic, by the definition."""
    free: dict[int, float] = {}
    ends: dict[int, float] = {}
    for op in order:
        ready = max((ends[before] for before in problem.graph.predecessors[op]), default=0.0)
        now = 0.0
        for stage in problem.stages[op]:
            now = max(now, free.get(stage.unit, 0.0), ready if stage.waits else 0.0)
            now = free[stage.unit] = now + stage.duration
        ends[op] = max(now, ready)
    return max(ends.values(), default=0.0)


def check_memory(seed: int) -> None:
    random = Random(seed)
    problem = random_memory(random, random_graph(random, random.randint(1, 6)))
    found = search(problem, time_limit=5)
    assert problem.graph.is_order(found.order)
    assert found.value == peak(problem, found.order)
    assert found.value == min(peak(problem, order) for order in all_orders(problem.graph))
    assert found.proven


def check_latency(seed: int) -> None:
    random = Random(seed)
    problem = random_latency(random, random_graph(random, random.randint(1, 6)))
    found = search(problem, time_limit=5)
    assert problem.graph.is_order(found.order)
    assert found.value == pytest.approx(makespan(problem, found.order), rel=1e-9)
    best = min(makespan(problem, order) for order in all_orders(problem.graph))
    assert found.value == pytest.approx(best, rel=1e-9)
    assert found.lower_bound <= best * (1 + 1e-9)
    assert found.proven


def check_annealing(seed: int) -> None:
    """Check the C code's figures of an order, and that it never returns a worse one."""
    random = Random(seed)
    problem = random_memory(random, random_graph(random, random.randint(1, 20)))
    start = list(problem.graph.topological_order)
    annealer = MemoryAnnealer(problem, start, seed)
    annealer.try_lists(0, Deadline.by_work(5), 20)
    for _ in range(2):
        annealer.anneal(0, Deadline.by_work(5))
        assert problem.graph.is_order(annealer.order)
        assert annealer.peak == peak(problem, annealer.order) <= peak(problem, start)


@settings(max_examples=150, deadline=None)
@given(seeds)
def test_least_peak_equals_brute_force(seed: int) -> None:
    check_memory(seed)


@settings(max_examples=150, deadline=None)
@given(seeds)
def test_least_makespan_equals_brute_force(seed: int) -> None:
    check_latency(seed)


@settings(max_examples=100, deadline=None)
@given(seeds)
def test_annealing_keeps_the_books(seed: int) -> None:
    check_annealing(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_memory, check_latency, check_annealing])
def test_ten_thousand(check: Callable[[int], None]) -> None:
    for seed in range(10_000):
        check(seed)


@settings(max_examples=5, deadline=None)
@given(seeds, st.integers(8, 60))
def test_least_peaks_do_not_go_by_seconds(seed: int, size: int) -> None:
    """They are the same where time stands still."""
    random = Random(seed)
    problem = random_memory(random, random_graph(random, size))
    found = search(problem, time_limit=0.05, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deadline, "monotonic", lambda: 0.0)
        assert search(problem, time_limit=0.05, seed=seed) == found


def test_a_search_by_work_ends_where_steps_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(deadline, "monotonic", lambda: now)
    end = Deadline.by_work(2.0)
    half = end.share(0.5)
    now = 19.0
    assert not end.passed
    end.spend(1.0)
    assert (half.passed, end.passed, end.remaining) == (True, False, 1.0)
    now = 20.0
    assert end.passed
    assert end.share(0.5).passed
    assert end.patience == 0.0


@settings(max_examples=20, deadline=None)
@given(seeds, st.booleans())
def test_never_worse_than_the_classical_orders(seed: int, memory: bool) -> None:
    random = Random(seed)
    graph = random_graph(random, 40)
    problem = (random_memory if memory else random_latency)(random, graph)
    found = search(problem, time_limit=0.2, seed=seed)
    assert graph.is_order(found.order)
    assert found.value == problem.evaluate(found.order)
    for order in baselines(problem).values():
        assert graph.is_order(order)
        assert found.lower_bound <= found.value <= problem.evaluate(order)


@pytest.mark.parametrize(("order", "peak"), [((0, 1, 2, 3), 25), ((0, 2, 1, 3), 15)])
def test_a_result_lies_over_an_operand_that_dies(order: tuple[int, ...], peak: int) -> None:
    """Op 1 writes over the result of op 0 only if op 2 has read it."""
    graph = Graph.from_edges(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    tensors = (Tensor(10, 0, (1, 2)), Tensor(10, 1, (3,)), Tensor(5, 2, (3,)), Tensor(5, 3))
    problem = MemoryProblem(graph, tensors, in_place=((), (0,), (), (1,)))
    assert problem.evaluate(order) == peak
    assert search(problem).value == 15


def test_a_branch_is_finished_before_the_next_begins() -> None:
    """Two branches with a large middle each: peaks add up when they run in lockstep."""
    graph = Graph.from_edges(6, [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)])
    sizes = [1, 100, 100, 1, 1, 1]
    tensors = tuple(
        Tensor(size, op, graph.successors[op], pinned=op == 5) for op, size in enumerate(sizes)
    )
    problem = MemoryProblem(graph, tensors)
    assert problem.evaluate((0, 1, 2, 3, 4, 5)) == 201
    found = search(problem)
    assert found.value == found.lower_bound == 102


def test_the_long_branch_is_issued_first() -> None:
    graph = Graph.from_edges(4, [(1, 2), (2, 3)])
    units = [0, 0, 1, 2]
    problem = LatencyProblem(graph, tuple((UnitStage(unit, 1.0),) for unit in units))
    assert problem.evaluate((0, 1, 2, 3)) == 4.0
    found = search(problem)
    assert (found.value, found.lower_bound) == (3.0, 3.0)


def test_weights_load_while_a_predecessor_computes() -> None:
    graph = Graph.from_edges(2, [(0, 1)])
    stages = ((UnitStage(1, 5.0),), (UnitStage(0, 4.0, waits=False), UnitStage(1, 1.0)))
    assert LatencyProblem(graph, stages).evaluate((0, 1)) == 6.0


def test_good_enough_ends_the_search() -> None:
    random = Random(5)
    problem = random_latency(random, random_graph(random, 60))
    easy = min(map(problem.evaluate, baselines(problem).values()))
    assert search(problem, time_limit=60, good_enough=easy).value <= easy


def test_a_candidate_is_a_lower_mark_and_must_be_an_order() -> None:
    problem = random_memory(Random(1), Graph.from_edges(2, [(0, 1)]))
    assert search(problem, candidates=[(0, 1)]).order == (0, 1)
    with pytest.raises(ValueError, match="not a topological order"):
        search(problem, candidates=[(1, 0)])


def test_same_seed_same_order() -> None:
    random = Random(9)
    graph = random_graph(random, 14)
    for problem in (random_memory(random, graph), random_latency(random, graph)):
        assert search(problem, seed=4) == search(problem, seed=4)
