"""Small ONNX models with the structure of real ones, with seeded random weights."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Writer:
    """Collects nodes and weights; every method returns the name of the value that it makes."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self._random = np.random.default_rng(seed)

    def constant(self, value: object, dtype: type = np.float32) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int, offset: float = 0.0) -> str:
        scale = 1.0 / np.sqrt(max(1, np.prod(shape[1:])))
        return self.constant(self._random.standard_normal(shape) * scale + offset)

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: object) -> str:
        output = name or f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], output, **attributes))
        return output

    def graph(
        self,
        inputs: Sequence[tuple[str, int, list[int]]],
        outputs: Sequence[tuple[str, int, list[int]]],
    ) -> GraphProto:
        def infos(entries: Sequence[tuple[str, int, list[int]]]) -> list[object]:
            return [helper.make_tensor_value_info(*entry) for entry in entries]

        return helper.make_graph(self.nodes, "g", infos(inputs), infos(outputs), self.weights)  # pyright: ignore


def as_model(graph: GraphProto) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def convolutional() -> ModelProto:
    """Stem, depthwise separable residual block, branches that are concatenated, classifier."""
    w = Writer()

    def conv(x: str, o: int, i: int, k: int, **attributes: object) -> str:
        y = w.op("Conv", x, w.weight(o, i, k, k), pads=[k // 2] * 4, **attributes)
        statistics = [w.weight(o, offset=1.0), w.weight(o), w.weight(o)]
        variance = w.constant(np.linspace(0.5, 1.5, o))
        return w.op("Relu", w.op("BatchNormalization", y, *statistics, variance))

    x = conv("x", 16, 3, 3, strides=[2, 2])
    y = conv(x, 16, 1, 3, group=16)
    x = w.op("Add", conv(y, 16, 16, 1), x)
    pooled = w.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    branches = [conv(pooled, 8, 16, 1), conv(pooled, 8, 16, 3), conv(pooled, 4, 16, 5)]
    joined = w.op("Concat", *branches, axis=1)
    features = w.op("Flatten", w.op("GlobalAveragePool", joined))
    logits = w.op("Gemm", features, w.weight(10, 20), w.weight(10), transB=1)
    w.op("Softmax", logits, name="y", axis=-1)
    return as_model(w.graph([("x", FLOAT, [2, 3, 20, 20])], [("y", FLOAT, [2, 10])]))


def transformer() -> ModelProto:
    """One encoder block of width 32 with 4 heads on 12 tokens; token ids go in."""
    w = Writer()
    tokens, width, heads = 12, 32, 4

    def linear(x: str, i: int, o: int) -> str:
        return w.op("Add", w.op("MatMul", x, w.weight(i, o)), w.weight(o))

    def split(x: str) -> str:
        shape = w.constant([1, tokens, heads, width // heads], np.int64)
        return w.op("Transpose", w.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def normalize(x: str) -> str:
        return w.op("LayerNormalization", x, w.weight(width, offset=1.0), w.weight(width))

    x = w.op("Gather", w.weight(50, width), "ids")
    x = normalize(w.op("Add", x, w.weight(1, tokens, width)))
    q, k, v = (split(linear(x, width, width)) for _ in range(3))
    scores = w.op("MatMul", q, w.op("Transpose", k, perm=[0, 1, 3, 2]))
    weights = w.op("Softmax", w.op("Mul", scores, w.constant(8.0**-0.5)), axis=-1)
    mixed = w.op("Transpose", w.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    mixed = w.op("Reshape", mixed, w.constant([1, tokens, width], np.int64))
    x = normalize(w.op("Add", linear(mixed, width, width), x))
    h = linear(x, width, 64)
    erf = w.op("Erf", w.op("Mul", h, w.constant(0.5**0.5)))
    gelu = w.op("Mul", w.op("Mul", h, w.constant(0.5)), w.op("Add", erf, w.constant(1.0)))
    w.op("Add", linear(gelu, 64, width), x, name="y")
    return as_model(w.graph([("ids", INT64, [1, tokens])], [("y", FLOAT, [1, tokens, width])]))


def conditional() -> ModelProto:
    """Compute y as relu(xW) if its mean is positive, else tanh(xW)."""
    w, then, other = Writer(), Writer(), Writer()
    w.op("MatMul", "x", w.weight(8, 8), name="h")
    mean = w.op("ReduceMean", "h", keepdims=0)
    then.op("Relu", "h", name="t")
    other.op("Tanh", "h", name="e")
    w.op(
        "If",
        w.op("Greater", mean, w.constant(0.0)),
        name="y",
        then_branch=then.graph([], [("t", FLOAT, [4, 8])]),
        else_branch=other.graph([], [("e", FLOAT, [4, 8])]),
    )
    return as_model(w.graph([("x", FLOAT, [4, 8])], [("y", FLOAT, [4, 8])]))


def loop() -> ModelProto:
    """Iterate x = tanh(xW + x) n times, as long as max|x| > 0.2; collect the maxima."""
    w, body = Writer(), Writer(1)
    h = body.op("Add", body.op("MatMul", "s", "w"), "s")
    body.op("Tanh", h, name="next")
    body.op("ReduceMax", body.op("Abs", "next"), name="largest", keepdims=0)
    body.op("Greater", "largest", body.constant(0.2), name="go")
    graph = body.graph(
        [("i", INT64, []), ("cond", BOOL, []), ("s", FLOAT, [4, 8])],
        [("go", BOOL, []), ("next", FLOAT, [4, 8])],
    )
    weights = np.random.default_rng(2).standard_normal((8, 8)) * 0.3
    w.weights.append(numpy_helper.from_array(weights.astype(np.float32), "w"))
    w.op("Loop", "n", w.constant(True, np.bool_), "x", name="y", body=graph)
    return as_model(w.graph([("n", INT64, []), ("x", FLOAT, [4, 8])], [("y", FLOAT, [4, 8])]))


@pytest.fixture
def make() -> Callable[[str], ModelProto]:
    """Make one of the models by name."""
    return lambda name: {
        "convolutional": convolutional,
        "transformer": transformer,
        "conditional": conditional,
        "loop": loop,
    }[name]()
