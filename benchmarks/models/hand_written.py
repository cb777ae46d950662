"""Models written node by node: control flow, and one block of a transformer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

OPSET = 18
node = helper.make_node


def value(name: str, shape: Sequence[int | str], kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def normal(rng: np.random.Generator, name: str, *shape: int, scale: float = 1.0) -> TensorProto:
    """Return a random tensor."""
    return numpy_helper.from_array((scale * rng.standard_normal(shape)).astype(np.float32), name)


def constant(name: str, number: Any, dtype: Any = np.int64) -> TensorProto:
    """Return a known tensor."""
    return numpy_helper.from_array(np.array(number, dtype), name)


def model_of(graph: GraphProto) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def make_loop_if() -> ModelProto:
    """Make a `Loop` of six steps s ← f(s · W), where f is relu or tanh by the sign of the mean.

    Inputs: x `[4, 64]`. Outputs: the last s, and the maximum of s after every step, `[6]`.
    """
    rows, width, steps = 4, 64, 6
    state = [rows, width]
    relu = helper.make_graph([node("Relu", ["h"], ["r"])], "then", [], [value("r", state)])
    tanh = helper.make_graph([node("Tanh", ["h"], ["t"])], "else", [], [value("t", state)])
    body = helper.make_graph(
        [
            node("MatMul", ["s", "W"], ["h"]),
            node("ReduceMean", ["h"], ["mean"], keepdims=0),
            node("Greater", ["mean", "zero"], ["positive"]),
            node("If", ["positive"], ["next"], then_branch=relu, else_branch=tanh),
            node("ReduceMax", ["next"], ["peak"], keepdims=0),
            node("Identity", ["go"], ["go_on"]),
        ],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("s", state)],
        [value("go_on", [], TensorProto.BOOL), value("next", state), value("peak", [])],
    )
    weights = [
        normal(np.random.default_rng(3), "W", width, width, scale=width**-0.5),
        constant("steps", steps),
        constant("true", True, np.bool_),
        constant("zero", 0, np.float32),
    ]
    return model_of(
        helper.make_graph(
            [node("Loop", ["steps", "true", "x"], ["y", "peaks"], body=body)],
            "loop_if",
            [value("x", state)],
            [value("y", state), value("peaks", [steps])],
            weights,
        )
    )


def make_transformer_block(
    tokens: int = 128, width: int = 256, heads: int = 4, hidden: int = 1024
) -> ModelProto:
    """Self-attention and a feed-forward layer, each after a layer normalization.

    Input and output: `[1, tokens, width]`.
    """
    rng = np.random.default_rng(4)
    shape = [1, tokens, width]
    weights = [
        constant("split", [1, tokens, heads, width // heads]),
        constant("join", shape),
        constant("scale", (width // heads) ** -0.5, np.float32),
    ]
    nodes: list[Any] = []

    def linear(source: str, result: str, inputs: int, outputs: int) -> None:
        weights.append(normal(rng, f"{result}.weight", inputs, outputs, scale=inputs**-0.5))
        weights.append(normal(rng, f"{result}.bias", outputs, scale=0.05))
        nodes.append(node("MatMul", [source, f"{result}.weight"], [f"{result}.product"]))
        nodes.append(node("Add", [f"{result}.product", f"{result}.bias"], [result]))

    def layer_norm(source: str, result: str) -> None:
        scale = 1 + 0.1 * rng.standard_normal(width).astype(np.float32)
        weights.append(numpy_helper.from_array(scale, f"{result}.scale"))
        weights.append(normal(rng, f"{result}.bias", width, scale=0.05))
        inputs = [source, f"{result}.scale", f"{result}.bias"]
        nodes.append(node("LayerNormalization", inputs, [result], axis=-1))

    layer_norm("x", "normal")
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        linear("normal", name, width, width)
        nodes.append(node("Reshape", [name, "split"], [f"{name}.heads"]))
        nodes.append(node("Transpose", [f"{name}.heads"], [f"{name}.t"], perm=order))
    nodes += [
        node("MatMul", ["q.t", "k.t"], ["products"]),
        node("Mul", ["products", "scale"], ["scores"]),
        node("Softmax", ["scores"], ["attention"], axis=-1),
        node("MatMul", ["attention", "v.t"], ["mixed"]),
        node("Transpose", ["mixed"], ["mixed.t"], perm=[0, 2, 1, 3]),
        node("Reshape", ["mixed.t", "join"], ["context"]),
    ]
    linear("context", "projected", width, width)
    nodes.append(node("Add", ["x", "projected"], ["residual"]))
    layer_norm("residual", "normal2")
    linear("normal2", "wide", width, hidden)
    nodes += gelu("wide", "active", weights)
    linear("active", "narrow", hidden, width)
    nodes.append(node("Add", ["residual", "narrow"], ["y"]))
    inputs, outputs = [value("x", shape)], [value("y", shape)]
    return model_of(helper.make_graph(nodes, "transformer_block", inputs, outputs, weights))


def gelu(source: str, result: str, weights: list[TensorProto]) -> list[Any]:
    """Return x · (1 + erf(x / √2)) / 2, as exporters write it in this opset."""
    weights += [
        constant("sqrt2", 2**0.5, np.float32),
        constant("one", 1, np.float32),
        constant("half", 0.5, np.float32),
    ]
    return [
        node("Div", [source, "sqrt2"], [f"{result}.scaled"]),
        node("Erf", [f"{result}.scaled"], [f"{result}.erf"]),
        node("Add", [f"{result}.erf", "one"], [f"{result}.gate"]),
        node("Mul", [source, f"{result}.gate"], [f"{result}.twice"]),
        node("Mul", [f"{result}.twice", "half"], [result]),
    ]
