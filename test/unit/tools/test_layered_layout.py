"""Drawing graphs in layers: edges run downward, boxes of a layer keep apart."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.tools.explain.layered_layout import GAP, isotonic, place


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    count = draw(st.integers(0, 12))
    sizes = draw(
        st.lists(st.tuples(st.floats(10, 200), st.floats(10, 80)), min_size=count, max_size=count)
    )
    pairs = list(combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return sizes, edges


@given(graphs())
def test_edges_run_downward_and_boxes_keep_apart(
    graph: tuple[list[tuple[float, float]], list[tuple[int, int]]],
) -> None:
    sizes, edges = graph
    placed = place(sizes, edges)
    for (source, target), points in zip(edges, placed.edges, strict=True):
        assert all(above[1] <= below[1] for above, below in pairwise(points))
        assert points[0] == (
            placed.nodes[source][0],
            placed.nodes[source][1] + sizes[source][1] / 2,
        )
        assert points[-1] == (
            placed.nodes[target][0],
            placed.nodes[target][1] - sizes[target][1] / 2,
        )
    for a, b in combinations(range(len(sizes)), 2):
        (ax, ay), (bx, by) = placed.nodes[a], placed.nodes[b]
        apart = abs(ax - bx) - (sizes[a][0] + sizes[b][0]) / 2
        assert ay != by or apart >= GAP - 1e-6
    for (x, y), (width, height) in zip(placed.nodes, sizes, strict=True):
        assert width / 2 - 1e-6 <= x <= placed.size[0] - width / 2 + 1e-6
        assert height / 2 - 1e-6 <= y <= placed.size[1] - height / 2 + 1e-6


def test_a_chain_is_straight() -> None:
    placed = place([(50, 20), (120, 20), (10, 20)], [(0, 1), (1, 2)])
    assert len({x for x, _ in placed.nodes}) == 1


def test_an_input_stands_above_its_first_reader() -> None:
    placed = place([(10, 10)] * 4, [(0, 1), (1, 2), (3, 2)])
    assert placed.nodes[3][1] == placed.nodes[1][1]


def test_cycles_are_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        place([(1, 1), (1, 1)], [(0, 1), (1, 0)])


@given(st.lists(st.integers(-9, 9), max_size=5))
def test_isotonic_regression_is_the_nearest_ordered_sequence(values: list[int]) -> None:
    found = isotonic([float(value) for value in values])
    assert all(a <= b + 1e-9 for a, b in pairwise(found))
    # The minimum over a convex cone: no feasible direction towards a grid of others improves it.
    error = sum((f - v) ** 2 for f, v in zip(found, values, strict=True))
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = np.sort(rng.uniform(-10, 10, len(values)))
        assert error <= float(((other - np.array(values)) ** 2).sum()) + 1e-9
