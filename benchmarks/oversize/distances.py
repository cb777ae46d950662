"""The nearest of many points: the distances of all pairs."""

import numpy as np
from onnx import ModelProto, helper

from benchmarks.oversize.case import Array, Dims, by_rows, model, normal


def build(dims: Dims) -> ModelProto:
    """|a|² + |b|² - 2 a·b for all pairs, then the least of every row."""
    rows, columns, depth = dims["rows"], dims["columns"], dims["depth"]
    nodes = [
        helper.make_node("Mul", ["a", "a"], ["aa"]),
        helper.make_node("ReduceSum", ["aa", "last"], ["a2"], keepdims=1),
        helper.make_node("Mul", ["b", "b"], ["bb"]),
        helper.make_node("ReduceSum", ["bb", "last"], ["b2"], keepdims=1),
        helper.make_node("Transpose", ["b2"], ["b2t"], perm=[1, 0]),
        helper.make_node("Transpose", ["b"], ["bt"], perm=[1, 0]),
        helper.make_node("MatMul", ["a", "bt"], ["ab"]),
        helper.make_node("Mul", ["ab", "two"], ["ab2"]),
        helper.make_node("Add", ["a2", "b2t"], ["norms"]),
        helper.make_node("Sub", ["norms", "ab2"], ["distances"]),
        helper.make_node("ReduceMin", ["distances"], ["y"], axes=[1], keepdims=1),
    ]
    constants = {"two": np.asarray(2, np.float32), "last": np.asarray([1], np.int64)}
    inputs = {"a": [rows, depth], "b": [columns, depth]}
    return model(nodes, inputs, [rows, 1], constants)


def make_inputs(dims: Dims) -> list[Array]:
    depth = dims["depth"]
    return [normal(dims["rows"], depth), normal(dims["columns"], depth, seed=1)]


def compute_in_pieces(a: Array, b: Array) -> Array:
    """Compute the least squared distance from every row of `a` to a row of `b`."""
    norms = np.square(b).sum(axis=1)

    def rows(part: Array) -> Array:
        all_distances = np.square(part).sum(axis=1, keepdims=True) + norms - 2 * part @ b.T
        return all_distances.min(axis=1, keepdims=True)

    return by_rows(a, rows)
