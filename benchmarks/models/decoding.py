"""Models of a decoder's step for one token: products with one row, attention over a cache of keys.

A cache of keys lies as they come, `[heads, keys, width]`: scores are products with its transpose.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSET = 23
SCORES = ((8, 1, 128, 64), (8, 1, 2048, 64), (32, 1, 1000, 128), (12, 4, 777, 64), (1, 1, 8192, 64))
"""Heads, queries, keys, width."""

ATTENTIONS = (
    *((8, 8, 1, keys, 64) for keys in (128, 512, 2048, 8192)),
    *((32, 32, 1, keys, 128) for keys in (128, 1000, 4096)),
    (32, 8, 1, 2048, 128),
    (12, 12, 5, 777, 64),
)
"""Heads of queries and of keys, queries, keys, width."""

CACHES = ((8, 8, 511, 64), (8, 8, 2047, 64), (32, 8, 1023, 128))
"""Heads of queries and of keys, keys before, width."""

WEIGHTS = ((768, 768), (768, 3072), (3072, 768), (4096, 4096), (768, 50257), (1000, 777))
"""Rows and columns that one row is multiplied by."""

LAYERS = ((8, 8, 511, 64), (16, 4, 1023, 64), (32, 8, 2047, 64))
"""Heads of queries and of keys, keys before, width: layers with rotary positions."""

KINDS = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


def _model(
    name: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[tuple[str, int, Sequence[int]]],
    outputs: Sequence[tuple[str, int, Sequence[int]]],
    known: Sequence[TensorProto] = (),
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        known,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def make_scores(heads: int, queries: int, keys: int, width: int) -> ModelProto:
    """`q[heads, queries, width] @ k[heads, keys, width]ᵀ`."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["y"]),
    ]
    kind = TensorProto.FLOAT
    inputs = [("q", kind, (heads, queries, width)), ("k", kind, (heads, keys, width))]
    return _model("scores", nodes, inputs, [("y", kind, (heads, queries, keys))])


def make_attention(
    heads: int, own: int, queries: int, keys: int, width: int, kind: int = TensorProto.FLOAT
) -> ModelProto:
    """Attention of few queries over keys and values that are inputs, in plain operators.

    With fewer heads of keys, several heads of queries share them.
    """
    shared = heads // own
    known = [_number("scale", width**-0.5, kind)]
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    rows = (1, own, shared * queries, width)
    inputs = [("q", kind, rows), ("k", kind, (1, own, keys, width))]
    inputs.append(("v", kind, (1, own, keys, width)))
    return _model("attention", nodes, inputs, [("y", kind, rows)], known)


def make_append(heads: int, own: int, past: int, width: int, as_op: bool = False) -> ModelProto:
    """Make a model that appends a key and a value to caches, which are outputs, and attends to all
    of them.

    By `Concat`, or by one `Attention` operator (`as_op`).
    """
    kind = TensorProto.FLOAT
    shared, keys = heads // own, past + 1
    q, new = (1, heads, 1, width), (1, own, 1, width)
    old, all_ = (1, own, past, width), (1, own, keys, width)
    inputs = [("q", kind, q), ("k", kind, new), ("v", kind, new)]
    inputs += [("past_k", kind, old), ("past_v", kind, old)]
    outputs = [("y", kind, q), ("present_k", kind, all_), ("present_v", kind, all_)]
    if as_op:
        names = ["q", "k", "v", "", "past_k", "past_v"]
        node = helper.make_node("Attention", names, ["y", "present_k", "present_v"])
        return _model("attention_op", [node], inputs, outputs)
    known = [_number("scale", width**-0.5, kind)]
    known.append(numpy_helper.from_array(np.array([1, own, shared, width]), "rows"))
    known.append(numpy_helper.from_array(np.array(q), "heads"))
    nodes = [
        helper.make_node("Concat", ["past_k", "k"], ["present_k"], axis=2),
        helper.make_node("Concat", ["past_v", "v"], ["present_v"], axis=2),
        helper.make_node("Reshape", ["q", "rows"], ["grouped"]),
        helper.make_node("Transpose", ["present_k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["grouped", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "present_v"], ["sums"]),
        helper.make_node("Reshape", ["sums", "heads"], ["y"]),
    ]
    return _model("append", nodes, inputs, outputs, known)


def make_layer(
    heads: int, own: int, past: int, width: int, kind: int = TensorProto.FLOAT
) -> ModelProto:
    """Attention of a decoder with its products: projections, rotary positions, caches, output."""
    hidden, keys = heads * width, past + 1
    random = np.random.default_rng(0)

    def matrix(name: str, columns: int) -> TensorProto:
        weight = random.standard_normal((hidden, columns), np.float32) / hidden**0.5
        return _number(name, weight, kind)

    angles = np.outer(np.arange(keys), 1e4 ** -(np.arange(width // 2) / (width // 2)))
    known = [matrix("wq", hidden), matrix("wk", own * width), matrix("wv", own * width)]
    known += [matrix("wo", hidden), _number("cos", np.cos(angles), kind)]
    known += [_number("sin", np.sin(angles), kind)]
    known.append(numpy_helper.from_array(np.array([[past]]), "position"))
    nodes: list[NodeProto] = []
    for name, count in (("q", heads), ("k", own), ("v", own)):
        known.append(numpy_helper.from_array(np.array([1, 1, count, width]), f"{name}_shape"))
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}_row"]),
            helper.make_node("Reshape", [f"{name}_row", f"{name}_shape"], [f"{name}_split"]),
            helper.make_node("Transpose", [f"{name}_split"], [f"{name}_heads"], perm=[0, 2, 1, 3]),
        ]
    for name in ("q", "k"):
        inputs = [f"{name}_heads", "cos", "sin", "position"]
        nodes.append(helper.make_node("RotaryEmbedding", inputs, [f"{name}_turned"]))
    inputs = ["q_turned", "k_turned", "v_heads", "", "past_k", "past_v"]
    nodes.append(helper.make_node("Attention", inputs, ["sums", "present_k", "present_v"]))
    known.append(numpy_helper.from_array(np.array([1, 1, hidden]), "row"))
    nodes += [
        helper.make_node("Transpose", ["sums"], ["sums_split"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["sums_split", "row"], ["sums_row"]),
        helper.make_node("MatMul", ["sums_row", "wo"], ["y"]),
    ]
    old, all_ = (1, own, past, width), (1, own, keys, width)
    inputs = [("x", kind, (1, 1, hidden)), ("past_k", kind, old), ("past_v", kind, old)]
    outputs = [("y", kind, (1, 1, hidden)), ("present_k", kind, all_), ("present_v", kind, all_)]
    return _model("layer", nodes, inputs, outputs, known)


def make_product(rows: int, columns: int, kind: int = TensorProto.FLOAT) -> ModelProto:
    """One row times a constant matrix."""
    weight = _number("w", _weight(rows, columns), kind)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    inputs, outputs = [("x", kind, (1, rows))], [("y", kind, (1, columns))]
    return _model("product", [node], inputs, outputs, [weight])


def make_byte_product(rows: int, columns: int) -> ModelProto:
    """One row times a constant matrix of bytes, the row quantized as it comes."""
    weight: NDArray[Any] = (_weight(rows, columns) * 100).clip(-127, 127).astype(np.int8)
    kind = TensorProto.FLOAT
    known = [numpy_helper.from_array(weight, "w"), _number("step", 0.01, kind)]
    known.append(numpy_helper.from_array(np.array(0, np.int8), "zero"))
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["bytes", "x_step", "x_zero"]),
        helper.make_node("MatMulInteger", ["bytes", "w", "x_zero", "zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["numbers"], to=kind),
        helper.make_node("Mul", ["x_step", "step"], ["both"]),
        helper.make_node("Mul", ["numbers", "both"], ["y"]),
    ]
    inputs, outputs = [("x", kind, (1, rows))], [("y", kind, (1, columns))]
    return _model("byte_product", nodes, inputs, outputs, known)


def _weight(rows: int, columns: int) -> NDArray[Any]:
    return np.random.default_rng(0).standard_normal((rows, columns), np.float32)


def _number(name: str, value: Any, kind: int) -> TensorProto:
    return numpy_helper.from_array(np.asarray(value).astype(_numpy(kind)), name)


def _numpy(kind: int) -> Any:
    return helper.tensor_dtype_to_np_dtype(kind)


def _models() -> Iterator[tuple[str, Callable[[], ModelProto]]]:
    def name(what: str, sizes: Sequence[int], kind: str = "f32") -> str:
        suffix = "" if kind == "f32" else f"_{kind}"
        return f"{what}_{'x'.join(map(str, sizes))}{suffix}"

    for sizes in SCORES:
        yield name("scores", sizes), partial(make_scores, *sizes)
    for sizes in ATTENTIONS:
        for kind, number in KINDS.items():
            yield name("decode", sizes, kind), partial(make_attention, *sizes, number)
    for sizes in CACHES:
        yield name("append", sizes), partial(make_append, *sizes)
        yield name("append_op", sizes), partial(make_append, *sizes, as_op=True)
    for sizes in LAYERS:
        for kind in ("f32", "f16"):
            yield name("layer", sizes, kind), partial(make_layer, *sizes, KINDS[kind])
    for sizes in WEIGHTS:
        for kind, number in KINDS.items():
            yield name("row", sizes, kind), partial(make_product, *sizes, number)
        yield name("row", sizes, "int8"), partial(make_byte_product, *sizes)


MODELS = dict(_models())
