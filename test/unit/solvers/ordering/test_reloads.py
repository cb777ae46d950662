"""What is loaded behind the last of some ops whose results one op reads: no order avoids it."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.ordering import Graph, LatencyProblem, Traffic, UnitStage, Value
from braid.solvers.ordering.graph import all_orders
from braid.solvers.ordering.job_bounds import JobBounds
from braid.solvers.ordering.job_graph import JobGraph
from braid.solvers.ordering.reloads import Reloads


def joined_chip(random: Random, tiles: int, capacity: int) -> LatencyProblem:
    """Tiles of a shared input, of which some go on over or beside themselves, and their readers."""
    edges: list[tuple[int, int]] = []
    values = [Value(random.randint(0, 4), None, (*range(tiles),), 1.0)]
    if random.random() < 0.5:
        values.append(Value(random.randint(1, 3), None, (random.randrange(tiles),), 2.0))
    units, joined, size = [1] * tiles, list[int](), tiles
    made: dict[int, tuple[int, tuple[int, ...]]] = {}
    for tile in range(tiles):
        made[tile] = random.randint(1, 3), ()
        if random.random() < 0.4:
            over = random.random() < 0.5
            edges.append((tile, size))
            made[size] = made[tile][0] if over else random.randint(1, 3), (tile,) * over
            units.append(random.choice((1, 2)))
            joined.append(size)
            size += 1
        else:
            joined.append(tile)
    for _ in range(random.randint(1, 2)):
        edges += [(op, size) for op in joined]
        made[size] = 1, ()
        values.append(Value(random.randint(0, 4), None, (size,), float(random.randint(1, 9))))
        units.append(random.choice((1, 2)))
        size += 1
    graph = Graph.from_edges(size, edges)
    place = {op: len(values) + number for number, op in enumerate(made)}
    for op, (amount, over) in made.items():
        users = graph.successors[op]
        lies = tuple(place[other] for other in over)
        values.append(Value(amount, op, users, float(amount), 2.0, not users, over=lies))
    stages = tuple((UnitStage(unit, float(random.randint(1, 4))),) for unit in units)
    return LatencyProblem(graph, stages, Traffic(tuple(values), capacity, 0, random.choice((0, 3))))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(2, 3), st.integers(6, 14))
def test_no_order_is_below_the_bound(seed: int, tiles: int, capacity: int) -> None:
    problem = joined_chip(Random(seed), tiles, capacity)
    try:
        fastest = min(map(problem.evaluate, all_orders(problem.graph)))
    except ValueError:
        return
    assert problem.lower_bound() <= fastest * (1 + 1e-9)


def tiled(capacity: int, through: bool = False) -> LatencyProblem:
    """Three tiles of 2 bytes made of 5 others, and what reads all, `through` an op for each."""
    tiles, ends = range(3), range(3, 6) if through else range(3)
    last = ends[-1] + 1
    edges = [(end, last) for end in ends]
    edges += [(tile, end) for tile, end in zip(tiles, ends, strict=True) if end != tile]
    graph = Graph.from_edges(last + 1, edges)
    values = [Value(5, None, (0, 1, 2), 5.0)]
    values += [Value(2, op, graph.successors[op], 3.0) for op in range(last)]
    stages = tuple((UnitStage(1 if op < 3 or op == last else 2, 1.0),) for op in range(last + 1))
    return LatencyProblem(graph, stages, Traffic(tuple(values), capacity, 0, 3))


def waits(problem: LatencyProblem) -> list[float]:
    assert problem.traffic is not None
    jobs = JobGraph.of(problem.graph, problem.plain, problem.traffic)
    found = np.array([jobs.ops[tile] for tile in range(3)])
    seconds = Reloads(jobs, problem.traffic).waits(jobs.ops[len(problem) - 1], found)
    return [0.0] * 3 if seconds is None else seconds.tolist()


def test_tiles_for_which_there_is_no_room_are_loaded_again() -> None:
    """Beside the 5 bytes there is room for one tile behind the last; whole tiles are loaded."""
    for through in (False, True):
        assert waits(tiled(8, through)) == [0.0, 3.0, 6.0]
        assert waits(tiled(10, through)) == [0.0, 0.0, 3.0]
        assert waits(tiled(11, through)) == [0.0, 0.0, 0.0]
    assert tiled(8).lower_bound() == 5.0 + 3.0 + 6.0 + 1.0 == tiled(8).evaluate(range(4))


def test_a_weight_for_which_there_is_no_room_is_loaded_behind_an_ancestor() -> None:
    """While the first op holds 4 and 2 bytes, the second's weight of 3 fits 9 bytes, but not 8."""
    graph = Graph.from_edges(2, [(0, 1)])
    values = (Value(4, None, (0,), 4.0), Value(2, 0, (1,)), Value(3, None, (1,), 6.0))
    stages = ((UnitStage(1, 7.0),), (UnitStage(1, 1.0),))
    for capacity, seconds in ((8, 4.0 + 7.0 + 6.0 + 1.0), (9, 12.0)):
        problem = LatencyProblem(graph, stages, Traffic(values, capacity, 0, 3))
        assert problem.lower_bound() == seconds
    assert problem.evaluate([0, 1]) == 12.0


def test_without_reloads_the_bound_is_lower() -> None:
    problem = tiled(8)
    jobs = JobGraph.of(problem.graph, problem.plain, problem.traffic)
    assert JobBounds(jobs, {}).value == 9.0
