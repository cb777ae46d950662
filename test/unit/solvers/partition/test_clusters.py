"""Clusters against all partitions of small graphs, and of large ones that they are some."""

from collections.abc import Iterator, Sequence
from random import Random
from time import perf_counter

import pytest

from braid.solvers.partition.clusters import (
    ALONE,
    ColoredGraph,
    alternation_bound,
    cluster,
    is_valid,
)


def random_graph(seed: int, ops: int) -> ColoredGraph:
    random = Random(seed)
    reach = random.choice((3, ops))
    operands = [
        random.sample(range(max(0, op - reach), op), min(op, reach, random.choice((0, 1, 1, 2, 3))))
        for op in range(ops)
    ]
    colors = (0, 1, 2, ALONE) if seed % 3 else (0, 1)
    color = [random.choice(colors) for _ in range(ops)]
    return ColoredGraph(color, operands, [random.choice((0, 1, 2, 7)) for _ in range(ops)])


def partitions(count: int) -> Iterator[list[int]]:
    """All partitions of a set, as growth strings."""

    def extend(prefix: list[int]) -> Iterator[list[int]]:
        if len(prefix) == count:
            yield prefix
            return
        for block in range(max(prefix, default=-1) + 2):
            yield from extend([*prefix, block])

    return extend([])


def is_connected(graph: ColoredGraph, members: list[int]) -> bool:
    """Whether members reach each other through values that they exchange or both read."""
    reached, ahead = {members[0]}, [members[0]]
    while ahead:
        op = ahead.pop()
        for other in members:
            shared = set(graph.operands[op]) & set(graph.operands[other])
            direct = op in graph.operands[other] or other in graph.operands[op]
            if other not in reached and (shared or direct):
                reached.add(other)
                ahead.append(other)
    return len(reached) == len(members)


def transferred(graph: ColoredGraph, of: Sequence[int]) -> int:
    """Bytes, value by value: once to each other cluster that reads it, and to the host."""
    total = 0
    for op, size in enumerate(graph.sizes):
        readers = {of[r] for r, operands in enumerate(graph.operands) if op in operands}
        total += size * len(readers - {of[op]})
    return total


def fewest(graph: ColoredGraph) -> tuple[int, int]:
    """Return the fewest clusters of any allowed partition, and the least bytes between so few."""
    placed = [op for op, color in enumerate(graph.color) if color != ALONE]
    best = len(placed), 1 << 30
    for blocks in partitions(len(placed)):
        count = max(blocks, default=-1) + 1
        if count > best[0]:
            continue
        of = [ALONE] * len(graph.color)
        for op, block in zip(placed, blocks, strict=True):
            of[op] = block
        members = [[op for op in placed if of[op] == block] for block in range(count)]
        if is_valid(graph, of) and all(is_connected(graph, ops) for ops in members):
            best = min(best, (count, transferred(graph, of)))
    return best


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_fewest(first: int) -> None:
    for seed in range(first, first + 30):
        graph = random_graph(seed, 3 + seed % 5)
        found = cluster(graph, time_limit=10)
        assert is_valid(graph, found.of)
        for number in range(found.count):
            assert is_connected(graph, [op for op, c in enumerate(found.of) if c == number])
        assert found.lower_bound <= found.count
        assert alternation_bound(graph) <= found.count == found.lower_bound
        assert (found.count, found.transfer) == fewest(graph)
        assert found.transfer == found.transfer_bound == transferred(graph, found.of)


@pytest.mark.parametrize("seed", range(6))
def test_large_graphs(seed: int) -> None:
    graph = random_graph(seed, 1500)
    begin = perf_counter()
    found = cluster(graph, time_limit=2)
    assert perf_counter() - begin < 60
    assert is_valid(graph, found.of)
    assert found.lower_bound <= found.count == len({*found.of} - {ALONE})
    assert found.transfer_bound <= found.transfer == transferred(graph, found.of)


def test_textbook_graph() -> None:
    """The gpu (1) starts twice, since d lies between; the fpga (2) and the cpu (0) once."""
    order = "abdefghmcijkl"
    device = {**dict.fromkeys("abfg", 1), **dict.fromkeys("dehm", 2), **dict.fromkeys("cijkl", 0)}
    edges = ["ab", "bd", "df", "fg", "de", "eh", "hm", "ci", "gi", "mi", "ij", "jk", "kl"]
    operands = [[order.index(a) for a, b in edges if b == op] for op in order]
    found = cluster(ColoredGraph([device[op] for op in order], operands))
    names = list(zip(order, found.of, strict=True))
    clusters = ["".join(op for op, c in names if c == number) for number in range(found.count)]
    assert sorted(clusters) == ["ab", "cijkl", "dehm", "fg"]
    assert found.lower_bound == 4
    assert clusters.index("ab") < clusters.index("dehm") < clusters.index("cijkl")


def test_diamond() -> None:
    """What a triangle joins directly is two clusters, with another color on the other way."""
    found = cluster(ColoredGraph([0, 1, 0], [[], [0], [1, 0]]))
    assert (found.count, found.lower_bound) == (3, 3)


def test_circle_through_two_clusters() -> None:
    """Of two pairs of neighbours of which each could be one cluster, one is two."""
    found = cluster(ColoredGraph([ALONE, 0, 1, 1, 0], [[], [0], [1, 0], [0], [3, 0]]))
    assert (found.count, found.lower_bound) == (3, 3)


def test_circle_through_a_third_cluster() -> None:
    """A path from one pair to the other over a third color counts as well."""
    colors = [ALONE, 0, 2, 1, 1, 0]
    found = cluster(ColoredGraph(colors, [[], [0], [1], [2, 0], [0], [4, 0]]))
    assert (found.count, found.lower_bound) == (4, 4)


def test_no_ops() -> None:
    found = cluster(ColoredGraph([], []))
    assert (found.of, found.count, found.lower_bound) == ((), 0, 0)
