"""An encoder with any batch and any length, compiled once."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid

HIDDEN, HEADS, WORDS, LONGEST = 96, 3, 50, 64


class Graph:
    """The nodes and weights of a model in the making."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.random = np.random.default_rng(0)

    def constant(self, values: Any, type: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, type), name))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(self.random.standard_normal(shape) / shape[0] ** 0.5, np.float32)

    def op(self, kind: str, *operands: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        return self.op(
            "Add", self.op("MatMul", x, self.weight(inputs, outputs)), self.weight(outputs)
        )

    def normalized(self, x: str) -> str:
        factors = self.weight(HIDDEN), self.weight(HIDDEN)
        return self.op("LayerNormalization", x, *factors, axis=-1, epsilon=1e-5)

    def attention(self, x: str, mask: str) -> str:
        split = self.constant([0, 0, HEADS, HIDDEN // HEADS], np.int64)
        q, k, v = (
            self.op(
                "Transpose", self.op("Reshape", self.dense(x, HIDDEN, HIDDEN), split), perm=order
            )
            for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = self.op("Mul", self.op("MatMul", q, k), self.constant(0.2, np.float32))
        shares = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        heads = self.op("Transpose", self.op("MatMul", shares, v), perm=[0, 2, 1, 3])
        joined = self.op("Reshape", heads, self.constant([0, 0, HIDDEN], np.int64))
        return self.dense(joined, HIDDEN, HIDDEN)


@pytest.fixture(scope="module")
def encoder() -> ModelProto:
    g = Graph()
    length = g.op("Gather", g.op("Shape", "words"), g.constant([1], np.int64), axis=0)
    places = g.constant(np.arange(LONGEST)[None], np.int64)
    ends = g.constant([0], np.int64), length, g.constant([1], np.int64)
    places = g.op("Slice", places, *ends)
    embedded = (
        g.op("Gather", g.weight(n, HIDDEN), i) for n, i in ((WORDS, "words"), (LONGEST, places))
    )
    x = g.normalized(g.op("Add", *embedded))
    hidden = g.op("Unsqueeze", "is_padding", g.constant([1, 2], np.int64))
    mask = g.op("Mul", hidden, g.constant(-10000, np.float32))
    x = g.normalized(g.op("Add", g.attention(x, mask), x))
    wide = g.op("Relu", g.dense(x, HIDDEN, 4 * HIDDEN))
    x = g.normalized(g.op("Add", g.dense(wide, 4 * HIDDEN, HIDDEN), x))
    first = g.op("Gather", x, g.constant(0, np.int64), axis=1)
    pooled = g.op("Tanh", g.dense(first, HIDDEN, HIDDEN))
    shape = ["batch", "length"]
    words = helper.make_tensor_value_info("words", TensorProto.INT64, shape)
    padding = helper.make_tensor_value_info("is_padding", TensorProto.FLOAT, shape)
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in (x, pooled)]
    graph = helper.make_graph(g.nodes, "encoder", [words, padding], results, g.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_encoder_of_any_batch_and_length(encoder: ModelProto) -> None:
    model = braid.compile(encoder)
    session = onnxruntime.InferenceSession(encoder.SerializeToString())
    random = np.random.default_rng(1)
    for shape in ((1, 1), (1, 7), (3, 31), (2, 64)):
        words = random.integers(0, WORDS, shape)
        padding = (random.random(shape) < 0.2).astype(np.float32)
        padding[:, 0] = 0
        expected = session.run(None, {"words": words, "is_padding": padding})
        for result, reference in zip(model(words, padding), expected, strict=True):
            np.testing.assert_allclose(result, reference, rtol=1e-4, atol=2e-5)
