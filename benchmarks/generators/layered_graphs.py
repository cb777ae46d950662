"""Random layered graphs, as neural networks with parallel branches have them."""

from random import Random

from braid.solvers.ordering import Graph, LatencyProblem, MemoryProblem, Tensor, UnitStage

UNITS = ("load", "store", "matrix", "vector")


def layered_graph(size: int, width: int, seed: int) -> Graph:
    """Return `size` ops in layers of 1 to `width`; edges come from up to three layers back.

    Only ops of the last layer have no successors.
    """
    random = Random(seed)
    layers: list[list[int]] = []
    edges: list[tuple[int, int]] = []
    op = 0
    while op < size:
        layer = list(range(op, min(op + random.randint(1, width), size)))
        for target in layer if layers else []:
            edges.append((random.choice(layers[-1]), target))
            for _ in range(random.randint(0, 2)):
                edges.append((random.choice(random.choice(layers[-3:])), target))
        if layers:
            # Unused values would be outputs, and many of those hide the savings of an order.
            used = {source for source, _ in edges}
            edges += [(source, random.choice(layer)) for source in layers[-1] if source not in used]
        layers.append(layer)
        op = layer[-1] + 1
    return Graph.from_edges(size, edges)


def narrow_graph(size: int, width: int, seed: int) -> Graph:
    """Return `size` ops on `width` chains with edges across: no antichain is larger."""
    random = Random(seed)
    last: list[int | None] = [None] * width
    edges: list[tuple[int, int]] = []
    for op in range(size):
        chain = random.randrange(width)
        before = last[chain]
        if before is not None:
            edges.append((before, op))
        other = last[random.randrange(width)]
        if other is not None and random.random() < 0.4:
            edges.append((other, op))
        last[chain] = op
    return Graph.from_edges(size, edges)


def memory_problem(graph: Graph, seed: int) -> MemoryProblem:
    """Return a problem in which every op makes one tensor of 1 to 64 KiB; sinks are outputs."""
    random = Random(seed)
    tensors = tuple(
        Tensor(1024 * random.randint(1, 64), op, graph.successors[op], not graph.successors[op])
        for op in range(len(graph))
    )
    workspace = tuple(random.choice((0, 0, 0, 8192)) for _ in range(len(graph)))
    return MemoryProblem(graph, tensors, workspace)


def latency_problem(graph: Graph, seed: int) -> LatencyProblem:
    """Return a problem on four units: some ops load weights, then compute, some then store."""
    random = Random(seed)
    stages: list[tuple[UnitStage, ...]] = []
    for _ in range(len(graph)):
        own = [UnitStage(random.choice((2, 2, 3)), random.randint(1, 20) * 1e-6)]
        if random.random() < 0.5:
            own.insert(0, UnitStage(0, random.randint(1, 12) * 1e-6, waits=False))
        if random.random() < 0.25:
            own.append(UnitStage(1, random.randint(1, 8) * 1e-6))
        stages.append(tuple(own))
    return LatencyProblem(graph, tuple(stages))
