"""Attention: the scores of all pairs of positions."""

import numpy as np
from onnx import ModelProto, helper

from benchmarks.oversize.case import Array, Dims, by_rows, model, normal


def build(dims: Dims) -> ModelProto:
    heads, length, depth = dims["heads"], dims["length"], dims["depth"]
    shape = [1, heads, length, depth]
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]
    constants = {"scale": np.asarray(depth**-0.5, np.float32)}
    return model(nodes, {"q": shape, "k": shape, "v": shape}, shape, constants)


def make_inputs(dims: Dims) -> list[Array]:
    shape = (1, dims["heads"], dims["length"], dims["depth"])
    return [normal(*shape, seed=seed) for seed in range(3)]


def compute_in_pieces(q: Array, k: Array, v: Array) -> Array:
    """softmax(q kᵀ / √depth) v, per head."""
    scale = q.shape[-1] ** -0.5

    def head(number: int) -> Array:
        def rows(part: Array) -> Array:
            scores = part @ k[0, number].T * scale
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            return powers @ v[0, number] / powers.sum(axis=1, keepdims=True)

        return by_rows(q[0, number], rows)

    return np.stack([head(number) for number in range(q.shape[1])])[None]
