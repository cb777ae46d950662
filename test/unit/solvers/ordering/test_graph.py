from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.solvers.ordering import Graph, count_orders, key_nodes, split_at_key_nodes

# relu -> {conv, matmul, mean, add} beside {conv, axpy, sub, add} -> softmax
TWO_BRANCHES = Graph.from_edges(
    10, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6), (6, 7), (7, 8), (4, 9), (8, 9)]
)


@st.composite
def graphs(draw: st.DrawFn, size: int) -> Graph:
    edges = [(i, j) for j in range(size) for i in range(j) if draw(st.booleans())]
    names = draw(st.permutations(range(size)))
    return Graph.from_edges(size, [(names[i], names[j]) for i, j in edges])


def on_every_path(graph: Graph, op: int) -> bool:
    """Whether no path from a source to a sink avoids `op`, by reachability without it."""
    reached = {o for o, before in enumerate(graph.predecessors) if not before} - {op}
    for other in graph.topological_order:
        if other != op and reached & set(graph.predecessors[other]):
            reached.add(other)
    return not any(not graph.successors[other] for other in reached)


def test_counts_of_known_graphs() -> None:
    assert count_orders(TWO_BRANCHES) == 70
    assert count_orders(Graph.from_edges(4, [(0, 1), (0, 2), (1, 3), (2, 3)])) == 2
    assert count_orders(TWO_BRANCHES, limit=70) == 70
    assert count_orders(TWO_BRANCHES, limit=69) is None


@given(st.integers(1, 6).flatmap(graphs))
def test_counts_and_key_nodes_by_enumeration(graph: Graph) -> None:
    size = len(graph)
    assert count_orders(graph) == sum(map(graph.is_order, permutations(range(size))))
    expected = {op for op in range(size) if on_every_path(graph, op)}
    assert set(key_nodes(graph)) == expected


def test_key_nodes_of_two_branches() -> None:
    assert key_nodes(TWO_BRANCHES) == [0, 9]


def test_pieces_end_with_key_nodes() -> None:
    diamonds = Graph.from_edges(7, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)])
    assert split_at_key_nodes(diamonds) == [[0, 1, 2, 3], [4, 5, 6]]
    assert split_at_key_nodes(diamonds, key_nodes_per_subgraph=3) == [list(range(7))]
    assert split_at_key_nodes(diamonds, min_nodes=4) == [list(range(7))]


@given(graphs(9), st.integers(1, 3), st.integers(1, 4))
def test_pieces_cover_all_ops_in_data_flow_order(graph: Graph, keys: int, least: int) -> None:
    pieces = split_at_key_nodes(graph, keys, least)
    assert graph.is_order([op for piece in pieces for op in piece])
    assert len(pieces) == 1 or min(map(len, pieces)) >= least


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        Graph.from_edges(2, [(0, 1), (1, 0)])
