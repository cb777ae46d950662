"""Cross-entropy: the logits of a whole vocabulary for every token."""

import numpy as np
from onnx import ModelProto, helper

from benchmarks.oversize.case import Array, Dims, by_rows, model, normal


def build(dims: Dims) -> ModelProto:
    tokens, vocabulary, width = dims["tokens"], dims["vocabulary"], dims["width"]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["logits"]),
        helper.make_node("LogSoftmax", ["logits"], ["logs"], axis=-1),
        helper.make_node("GatherElements", ["logs", "labels"], ["picked"], axis=1),
        helper.make_node("Neg", ["picked"], ["y"]),
    ]
    inputs = {"x": [tokens, width], "w": [width, vocabulary], "labels": [tokens, 1]}
    return model(nodes, inputs, [tokens, 1], integers=("labels",))


def make_inputs(dims: Dims) -> list[Array]:
    tokens, vocabulary, width = dims["tokens"], dims["vocabulary"], dims["width"]
    labels = np.random.default_rng(2).integers(0, vocabulary, (tokens, 1))
    weights = normal(width, vocabulary, seed=1) * np.float32(width**-0.5)
    return [normal(tokens, width), weights, labels]


def compute_in_pieces(x: Array, w: Array, labels: Array) -> Array:
    """Compute the negative log-probability of every row's label."""
    both = np.concatenate([x, labels.astype(np.float64)], axis=1)

    def rows(part: Array) -> Array:
        logits = part[:, :-1].astype(np.float32) @ w
        high = logits.max(axis=1, keepdims=True)
        total = np.log(np.exp(logits - high).sum(axis=1, keepdims=True)) + high
        return total - np.take_along_axis(logits, part[:, -1:].astype(np.int64), axis=1)

    return by_rows(both, rows)
