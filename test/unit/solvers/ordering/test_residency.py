"""Values on a chip: what is loaded, spilled and reloaded, and that it always fits."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.solvers.ordering import (
    Graph,
    LatencyProblem,
    Residency,
    Traffic,
    UnitStage,
    Value,
    baselines,
    search,
)
from braid.solvers.ordering.latency import restrict
from braid.solvers.ordering.residency_plan import AHEADS
from test.unit.solvers.ordering.chips import chip, layered_chip


class Recorder:
    """Notes what is done; a token counts steps, since each begins when the one before ends."""

    start = 0

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.steps: list[tuple[str, int]] = []
        self.loads: list[tuple[int, int]] = []

    def begin(self, op: int) -> None:
        self.op = op

    def join(self, first: int, second: int, /) -> int:
        return max(first, second)

    def load(self, value: int, after: int) -> int:
        self.loads.append((self.op, value))
        return self._step("load", value)

    def store(self, value: int, after: int) -> int:
        return self._step("store", value)

    def overwrite(self, value: int, after: int) -> int:
        return self._step("overwrite", value)

    def compute(self, op: int, after: int) -> int:
        return self._step("compute", op)

    def release(self, value: int, after: int) -> None:
        self.steps.append(("release", value))

    def _step(self, kind: str, number: int) -> int:
        self.steps.append((kind, number))
        return len(self.steps)


@given(st.integers(0, 1 << 30), st.integers(2, 12), st.sampled_from([2, *AHEADS]))
def test_what_is_read_is_there_and_everything_fits(seed: int, size: int, ahead: int) -> None:
    problem = chip(Random(seed), size)
    traffic = problem.traffic
    assert traffic is not None
    recorder = Recorder([value.size for value in traffic.values])
    Residency(problem.graph, traffic, recorder, ahead).run(problem.graph.topological_order)
    there, outside = set[int](), {v for v, value in enumerate(traffic.values) if value.is_leaf}
    overwritten, rest = set[int](), list(problem.graph.topological_order)
    for kind, number in recorder.steps:
        if kind == "load":
            assert number in outside and number not in there
            there.add(number)
            assert sum(traffic.values[v].size for v in there) <= traffic.capacity
        elif kind == "compute":
            rest.remove(number)
            assert there.issuperset(traffic.reads.get(number, ()))
            there -= overwritten
            there |= {*traffic.makes.get(number, ())}
            assert sum(traffic.values[v].size for v in there) <= traffic.capacity
            assert not overwritten & {v for op in rest for v in traffic.reads.get(op, ())}
            overwritten.clear()
        elif kind == "overwrite":
            overwritten.add(number)
        elif kind == "store":
            assert number in there
            outside.add(number)
        else:
            there.remove(number)
    assert outside.issuperset(v for v, value in enumerate(traffic.values) if value.output)


@given(st.integers(0, 1 << 30), st.integers(2, 7), st.booleans())
def test_bounds_hold_for_every_order(seed: int, size: int, layers: bool) -> None:
    from itertools import permutations

    problem = layered_chip(Random(seed), size // 2, 2) if layers else chip(Random(seed), size)
    size = len(problem)
    orders = filter(problem.graph.is_order, permutations(range(size)))
    best = min(map(problem.evaluate, orders))
    assert problem.lower_bound() <= best * (1 + 1e-9)
    found = search(problem, time_limit=1.0)
    assert found.lower_bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= found.value <= best * (1 + 1e-9)


def test_what_is_needed_last_makes_room() -> None:
    """Of three results of which two fit, the one with the furthest use is stored and reloaded."""
    graph = Graph.from_edges(5, [(1, 3), (2, 3), (3, 4), (0, 4)])
    users = [(4,), (3,), (3,), (4,), ()]
    values = tuple(Value(10, op, users[op], 1.0, 1.0) for op in range(5))
    recorder = Recorder([10] * 5)
    Residency(graph, Traffic(values, 30, 0, 1), recorder).run(range(5))
    assert recorder.steps[2:6] == [("compute", 2), ("store", 0), ("release", 0), ("compute", 3)]
    assert ("load", 0) in recorder.steps[6:]


@pytest.mark.parametrize(
    ("room", "loads"),
    [
        (40, [(0, 3), (1, 4), (2, 5)]),
        (60, [(0, 3), (0, 4), (1, 5)]),
        (70, [(0, 3), (0, 4), (0, 5)]),
    ],
)
def test_loads_come_as_early_as_there_is_room(room: int, loads: list[tuple[int, int]]) -> None:
    """For which op the weight of each of three ops in a row is issued."""
    values = [Value(10, op, (op + 1,) if op < 2 else ()) for op in range(3)]
    values += [Value(20, None, (op,), 1.0) for op in range(3)]
    recorder = Recorder([value.size for value in values])
    graph = Graph.from_edges(3, [(0, 1), (1, 2)])
    Residency(graph, Traffic(tuple(values), room, 0, 1), recorder, max(AHEADS)).run(range(3))
    assert recorder.loads == loads


def test_a_part_is_loaded_behind_its_source() -> None:
    """There is room for all at once, but what is loaded is stored by the op before."""
    graph = Graph.from_edges(3, [(1, 2)])
    values = (Value(1, 1, (), output=True), Value(1, None, (2,), sources=(0,)))
    recorder = Recorder([1, 1])
    Residency(graph, Traffic(values, 9, 0, 1), recorder, max(AHEADS)).run(range(3))
    assert recorder.steps.index(("store", 0)) < recorder.steps.index(("load", 1))


@given(st.integers(0, 1 << 30), st.integers(2, 40))
def test_an_order_is_never_slower_by_early_loads(seed: int, size: int) -> None:
    problem = chip(Random(seed), size)
    for order in baselines(problem).values():
        seconds = {ahead: problem.seconds(order, ahead) for ahead in AHEADS}
        assert problem.evaluate(order) == min(seconds.values()) == seconds[problem.ahead(order)]


def test_a_result_lies_over_an_operand_that_dies() -> None:
    """Three ops in a row in room for one value; the last may not write over what is kept."""
    graph = Graph.from_edges(3, [(0, 1), (1, 2)])
    values = (
        Value(10, 0, (1,)),
        Value(10, 1, (2,), store=1.0, kept=True, over=(0,)),
        Value(10, 2, over=(1,)),
    )
    recorder = Recorder([10] * 3)
    with pytest.raises(ValueError, match="op 2 does not fit 10 bytes"):
        Residency(graph, Traffic(values, 10, 0, 1), recorder).run(range(3))
    assert recorder.steps == [("compute", 0), ("overwrite", 0), ("compute", 1)]


def test_an_op_that_does_not_fit() -> None:
    traffic = Traffic((Value(10, 0, ()),), 9, 0, 1)
    problem = LatencyProblem(Graph.from_edges(1, []), ((UnitStage(0, 1.0),),), traffic)
    with pytest.raises(ValueError, match="op 0 does not fit 9 bytes"):
        problem.evaluate((0,))


def test_a_part_finds_present_what_was_made_before_it() -> None:
    graph = Graph.from_edges(3, [(0, 1), (1, 2)])
    values = tuple(Value(8, op, graph.successors[op], 5.0, 5.0) for op in range(3))
    whole = LatencyProblem(graph, ((UnitStage(1, 1.0),),) * 3, Traffic(values, 16, 0, 2))
    part = restrict(whole, [1, 2])
    assert part.evaluate((0, 1)) == part.lower_bound() == 2.0
