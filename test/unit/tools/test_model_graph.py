"""The tree of groups of a model's ops: modules, repeated blocks, and pieces of what is long."""

from collections import Counter

import pytest

from braid.tools.explain.graph_view import module_paths
from braid.tools.explain.model_graph import MOST, GraphNode, ModelGraph, model_graph
from braid.tools.explain.model_names import joined, joined_label, model_op, model_ops
from braid.tools.explain.repeated_blocks import Stretch, longest_stretch


def graph_of(*names: str) -> ModelGraph:
    paths = module_paths(names)
    nodes = [
        GraphNode(name, name.rpartition("/")[2], "tensor<4xf32>", paths[name]) for name in names
    ]
    return model_graph(nodes, [(n, n + 1) for n in range(len(names) - 1)])


def labels(graph: ModelGraph) -> list[tuple[str, str, int]]:
    return [(group.label, group.kind, group.times) for group in graph.groups[1:]]


def test_parts_of_an_op_are_a_group() -> None:
    graph = graph_of("a", "lrn/pad", "lrn/mul", "lrn", "b")
    assert labels(graph) == [("lrn", "module", 1)]
    assert graph.group_of == (0, 1, 1, 1, 0)


def test_a_group_of_one_part_is_open() -> None:
    graph = graph_of("model/encoder/a/conv", "model/encoder/b/conv", "x")
    # Neither `model` nor `a` and `b` tell anything.
    assert labels(graph) == [("model/encoder", "module", 1)]


def test_equal_layers_are_one_block() -> None:
    names = [f"{part}.{n}/{op}" for part in ("layer",) for n in range(12) for op in ("mul", "add")]
    graph = graph_of("x", *names, "y")
    assert ("layer.0 … layer.11", "repeated", 12) in labels(graph)
    inside = graph.groups.index(next(g for g in graph.groups if g.times == 12))
    assert sum(group.parent == inside for group in graph.groups) == 12


def test_unlike_layers_are_not() -> None:
    graph = graph_of("x", "l.0/mul", "l.0/add", "l.1/mul", "l.1/add", "l.2/mul", "l.2/exp")
    assert all(group.times == 1 for group in graph.groups)


def test_blocks_repeat_whatever_their_names() -> None:
    # Names of an exporter, behind two ops and before one: only the second op of a layer reads two.
    kinds = ["x", "mul", *["norm", "matmul", "add", "tanh", "add"] * 30, "head"]
    nodes = [GraphNode(f"val_{n}", kind, "f32", ()) for n, kind in enumerate(kinds)]
    chain = [(n, n + 1) for n in range(len(kinds) - 1)]
    around = [(n - 1, n + 2) for n, kind in enumerate(kinds) if kind == "norm"]
    within = [(n, n + 4) for n, kind in enumerate(kinds) if kind == "norm"]
    graph = model_graph(nodes, [*chain, *around, *within])
    (repeated,) = (group for group in graph.groups if group.kind == "repeated")
    assert (repeated.label, repeated.times) == ("val_2 … val_151", 30)
    blocks = [n for n, g in enumerate(graph.groups) if g.parent == graph.groups.index(repeated)]
    assert [graph.group_of.count(block) for block in blocks] == [5] * 30
    assert graph.groups[blocks[1]].label == "val_7 … val_11"


def test_a_block_begins_where_least_goes_across() -> None:
    # Four repeats and three ops of a fifth: the layers begin one op after the first that repeats.
    keys = list("dabcdabcdabcdabcda")
    crossings = [1 if key == "a" else 3 for key in keys]
    assert longest_stretch(keys, crossings) == Stretch(1, 4, 4)
    assert longest_stretch("abcdefghijkl", [1] * 12) is None


@pytest.mark.parametrize("count", [MOST, MOST + 1, 5000, MOST * MOST + 1])
def test_no_group_is_too_large(count: int) -> None:
    graph = graph_of(*(f"op{n}" for n in range(count)))
    parts = Counter(graph.group_of) + Counter(group.parent for group in graph.groups)
    assert max(parts.values()) <= MOST
    assert sum(Counter(graph.group_of).values()) == count
    # Pieces keep the order of the model.
    assert list(graph.group_of) == sorted(graph.group_of)


def test_names_of_the_model() -> None:
    known = {"lrn", "lrn/pad", "conv", "a/b"}
    assert model_op("lrn/pad", known) == "lrn"
    assert model_op("a/b", known) == "a/b"
    assert model_ops(["lrn/pad", "lrn/mul", "lrn", "conv"], known) == ("lrn", "conv")
    assert (
        joined(["/layer.0/ffn/up/MatMul", "/layer.0/ffn/Relu"]) == "/layer.0/ffn: up/MatMul + Relu"
    )
    assert joined(["conv", "relu"]) == "conv + relu"
    assert joined(["a/b"]) == "a/b"
    assert joined([f"r{n}" for n in range(28)]) == "r0 … r27 (28 ops)"


def test_labels_of_kernels() -> None:
    assert joined_label("r0/conv, r0, r1") == "r0 + r1"
    assert joined_label("r22/conv/pad") == "r22/conv/pad"
    assert joined_label("a, b, c, d, e, f") == "a … f (6 ops)"
