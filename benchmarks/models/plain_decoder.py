"""A plain decoder as exporters write it, with the keys and values of earlier tokens as inputs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

WEIGHTS = ("float32", "float16", "int8")
"""The types in which weights are stored."""
HEAD_WIDTH = 64
VOCABULARY = 4096


def make_plain_decoder(layers: int, width: int, kind: str = "float32") -> ModelProto:
    """Return a decoder with random weights; batch, new tokens and the cache are open.

    Weights are stored as `kind`, one of `WEIGHTS`, and computed with in f32.
    """
    nodes: list[NodeProto] = []
    random, weights = np.random.default_rng(0), list[TensorProto]()
    heads = width // HEAD_WIDTH
    cache = ["batch", heads, "past", HEAD_WIDTH]

    def stored(name: str, values: NDArray[Any]) -> str:
        weights.append(numpy_helper.from_array(values, name))
        return name

    def weight(name: str, *shape: int) -> str:
        values = (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        if kind == "float16":
            half = stored(f"{name}.stored", values.astype(np.float16))
            return node("Cast", [half], name, to=TensorProto.FLOAT)
        if kind == "int8":
            scale = np.abs(values).max(0) / 127
            whole = stored(f"{name}.stored", np.round(values / scale).astype(np.int8))
            factors = stored(f"{name}.scale", scale)
            return node("DequantizeLinear", [whole, factors], name, axis=1)
        return stored(name, values)

    def node(op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    weights.append(numpy_helper.from_array(np.array([0, 0, heads, HEAD_WIDTH]), "split"))
    weights.append(numpy_helper.from_array(np.array([0, 0, width]), "join"))
    weights.append(numpy_helper.from_array(np.float32(HEAD_WIDTH**-0.5), "scale"))
    x = node("Gather", [weight("table", VOCABULARY, width), "ids"], "x")
    for layer in range(layers):
        for part in ("query", "key", "value"):
            h = node("MatMul", [x, weight(f"w{part}{layer}", width, width)], f"{part}{layer}")
            h = node("Reshape", [h, "split"], f"{part}{layer}.split")
            node("Transpose", [h], f"{part}{layer}.heads", perm=[0, 2, 1, 3])
        for part in ("key", "value"):
            parts = [f"past.{layer}.{part}", f"{part}{layer}.heads"]
            node("Concat", parts, f"present.{layer}.{part}", axis=2)
        keys = node("Transpose", [f"present.{layer}.key"], f"keys{layer}", perm=[0, 1, 3, 2])
        scores = node("MatMul", [f"query{layer}.heads", keys], f"scores{layer}")
        scores = node("Mul", [scores, "scale"], f"scaled{layer}")
        shares = node("Softmax", [scores], f"shares{layer}", axis=-1)
        read = node("MatMul", [shares, f"present.{layer}.value"], f"read{layer}")
        read = node("Transpose", [read], f"read{layer}.rows", perm=[0, 2, 1, 3])
        read = node("Reshape", [read, "join"], f"read{layer}.joined")
        read = node("MatMul", [read, weight(f"wread{layer}", width, width)], f"mixed{layer}")
        x = node("Add", [x, read], f"attended{layer}")
        inner = node("MatMul", [x, weight(f"wup{layer}", width, 4 * width)], f"up{layer}")
        inner = node("Relu", [inner], f"active{layer}")
        inner = node("MatMul", [inner, weight(f"wdown{layer}", 4 * width, width)], f"down{layer}")
        x = node("Add", [x, inner], f"layer{layer}")
    node("MatMul", [x, weight("head", width, VOCABULARY)], "logits")
    names = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    value = helper.make_tensor_value_info
    inputs = [value("ids", TensorProto.INT64, ["batch", "new"])]
    inputs += [value(f"past.{name}", TensorProto.FLOAT, cache) for name in names]
    grown = [*cache[:2], "total", HEAD_WIDTH]
    outputs = [value("logits", TensorProto.FLOAT, ["batch", "new", VOCABULARY])]
    outputs += [value(f"present.{name}", TensorProto.FLOAT, grown) for name in names]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
