"""Random problems on a chip with little memory."""

from random import Random

from braid.solvers.ordering import Graph, LatencyProblem, Traffic, UnitStage, Value


def chip(random: Random, size: int) -> LatencyProblem:
    """Ops on a chip for a bit more than the largest of them needs."""
    graph = Graph.from_edges(
        size,
        {(i, j) for j in range(1, size) for i in random.sample(range(j), min(j, 2))},
    )
    sizes = [random.randint(1, 9) for _ in range(size)]
    over = [
        tuple(b for b in graph.predecessors[op] if sizes[b] == sizes[op] or random.random() < 0.2)
        for op in range(size)
    ]
    for op in range(size):
        sizes[op] = sizes[over[op][0]] if over[op] else sizes[op]
    values = [
        Value(
            sizes[op],
            op,
            graph.successors[op],
            2.0,
            3.0,
            not graph.successors[op] or random.random() < 0.2,
            over=tuple(b for b in over[op] if sizes[b] == sizes[op]),
        )
        for op in range(size)
    ]
    values += [Value(random.randint(1, 9), None, (op,), 1.0, 1.0) for op in range(0, size, 2)]
    needs = [
        sum(value.size for value in values if op in (value.producer, *value.consumers))
        for op in range(size)
    ]
    stages = tuple((UnitStage(1 + op % 2, float(random.randint(1, 5))),) for op in range(size))
    capacity = max(needs) + random.randint(0, 6)
    counts = tuple(random.choice((1, 1, 1, 2, 3)) for _ in range(random.choice((0, 4))))
    store = random.choice((3, 3, 0))
    return LatencyProblem(graph, stages, Traffic(tuple(values), capacity, 0, store), counts)


def layered_chip(random: Random, layers: int, tiles: int) -> LatencyProblem:
    """Layers of `tiles`, of which each loads what all of the layer before stored."""
    size = layers * tiles
    before = {op: range(op - op % tiles - tiles, op - op % tiles) for op in range(tiles, size)}
    graph = Graph.from_edges(size, [(s, op) for op, sources in before.items() for s in sources])
    values = [Value(1, op, (), 2.0, 3.0, output=True) for op in range(size)]
    for op, sources in before.items():
        values.append(Value(random.randint(1, 4), None, (op,), 1.0, sources=tuple(sources)))
    stages = tuple((UnitStage(1, float(random.randint(1, 5))),) for _ in range(size))
    return LatencyProblem(graph, stages, Traffic(tuple(values), 8, 0, 2))
