"""Attention over caches of keys and values, with few queries, against numpy in f64."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import braid

KINDS = {
    "f32": (np.float32, TensorProto.FLOAT, 3e-6),
    "f16": (np.float16, TensorProto.FLOAT16, 6e-4),
    "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16, 5e-3),
}
NAMES = ("q", "k", "v", "past_k", "past_v", "mask")


def attention(q, k, v, past_k, past_v, mask, scale, causal):
    """Return the result, and all keys and values, which several heads of queries share."""
    keys, values = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    shared = q.shape[1] // k.shape[1]
    every = np.repeat(keys, shared, 1), np.repeat(values, shared, 1)
    scores = q @ every[0].swapaxes(2, 3) * scale + mask
    if causal:
        past = past_k.shape[2]
        later = np.arange(scores.shape[3]) > past + np.arange(scores.shape[2])[:, None]
        scores = np.where(later, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ every[1], keys, values


def model(shapes: dict[str, tuple[int, ...]], number: int, as_op: bool, causal: bool):
    """By the `Attention` operator, or by the ops that exporters write."""
    ports = [helper.make_tensor_value_info(name, number, shapes[name]) for name in NAMES]
    results = [helper.make_tensor_value_info(n, number, None) for n in ("y", "keys", "values")]
    known: list[TensorProto] = []
    if as_op:
        inputs = ["q", "k", "v", "mask", "past_k", "past_v"]
        nodes = [
            helper.make_node("Attention", inputs, ["y", "keys", "values"], is_causal=int(causal))
        ]
    else:
        (_, heads, _, width), own = shapes["q"], shapes["k"][1]
        all_keys = shapes["past_k"][2] + shapes["k"][2]
        batch = shapes["q"][0]
        half = helper.tensor_dtype_to_np_dtype(number)
        known = [
            numpy_helper.from_array(np.array(width**0.5, half), "root"),
            numpy_helper.from_array(np.array([2]), "axes"),
            numpy_helper.from_array(np.array([batch, own, heads // own, all_keys, width]), "five"),
            numpy_helper.from_array(np.array([batch, heads, all_keys, width]), "four"),
        ]
        nodes = [
            helper.make_node("Concat", [f"past_{n}", n], [full], axis=2)
            for n, full in (("k", "keys"), ("v", "values"))
        ]
        for full in ("keys", "values"):
            nodes += [
                helper.make_node("Unsqueeze", [full, "axes"], [f"{full}_1"]),
                helper.make_node("Expand", [f"{full}_1", "five"], [f"{full}_5"]),
                helper.make_node("Reshape", [f"{full}_5", "four"], [f"{full}_4"]),
            ]
        nodes += [
            helper.make_node("Transpose", ["keys_4"], ["t"], perm=[0, 1, 3, 2]),
            helper.make_node("Div", ["t", "root"], ["scaled"]),
            helper.make_node("MatMul", ["q", "scaled"], ["scores"]),
            helper.make_node("Add", ["scores", "mask"], ["masked"]),
            helper.make_node("Softmax", ["masked"], ["p"], axis=-1),
            helper.make_node("MatMul", ["p", "values_4"], ["y"]),
        ]
    graph = helper.make_graph(nodes, "decoding", ports, results, known)
    opsets = [helper.make_opsetid("", 23)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check(shapes, kind: str, as_op: bool, causal: bool) -> None:
    dtype, number, tolerance = KINDS[kind]
    made = model(shapes, number, as_op, causal)
    # In the type of the model: by the operator's definition, half of it on either side.
    root = shapes["q"][-1] ** 0.5
    scale = float(dtype(root**-0.5)) ** 2 if as_op else 1 / float(dtype(root))
    random = np.random.default_rng(1)
    inputs = [random.standard_normal(shapes[name]).astype(dtype) for name in NAMES]
    exact = attention(*(x.astype(np.float64) for x in inputs), scale, causal)
    for actual, expected in zip(braid.compile(made)(*inputs), exact, strict=True):
        result: NDArray[np.float64] = np.asarray(actual).astype(np.float64)
        assert np.abs(result - expected).max() <= tolerance * max(1, np.abs(expected).max())


@settings(max_examples=12, deadline=None)
@given(data=st.data(), kind=st.sampled_from(sorted(KINDS)), as_op=st.booleans())
def test_a_cache_that_grows(data: st.DataObject, kind: str, as_op: bool) -> None:
    batch, own, shared = (data.draw(st.integers(1, n)) for n in (2, 3, 4))
    queries, width = data.draw(st.integers(1, 7)), data.draw(st.sampled_from([8, 21, 64, 96]))
    past = data.draw(st.sampled_from([1, 15, 127, 300]))
    causal = as_op and data.draw(st.booleans())
    new, old = (batch, own, queries, width), (batch, own, past, width)
    shapes = dict(
        zip(NAMES, ((batch, own * shared, queries, width), new, new, old, old), strict=False)
    )
    shapes["mask"] = (1, 1, data.draw(st.sampled_from([1, queries])), past + queries)
    check(shapes, kind, as_op, causal)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_op", [False, True])
def test_many_keys(kind: str, as_op: bool) -> None:
    """More heads of queries than of keys in a cache, so that several read each."""
    new, old = (1, 4, 1, 64), (1, 4, 2047, 64)
    shapes = dict(zip(NAMES, ((1, 16, 1, 64), new, new, old, old, (1, 1, 1, 2048)), strict=True))
    check(shapes, kind, as_op, False)


def test_strictly_small_scales_keep_products_from_overflow() -> None:
    ports = [
        helper.make_tensor_value_info("q", TensorProto.FLOAT, [2, 4, 8]),
        helper.make_tensor_value_info("k", TensorProto.FLOAT, [2, 8, 64]),
    ]
    nodes = [
        helper.make_node("Mul", ["k", "scale"], ["scaled"]),
        helper.make_node("MatMul", ["q", "scaled"], ["y"]),
    ]
    scale = numpy_helper.from_array(np.array(1e-20, np.float32), "scale")
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "scaled", ports, [result], [scale])
    strict = braid.compile(helper.make_model(graph, ir_version=10), numerics="strict")
    random = np.random.default_rng(0)
    q = 1e10 * random.standard_normal((2, 4, 8)).astype(np.float32)
    k = 1e30 * random.standard_normal((2, 8, 64)).astype(np.float32)
    exact = q.astype(np.float64) @ (k.astype(np.float64) * 1e-20)
    np.testing.assert_allclose(strict(q, k), exact, rtol=1e-4, atol=1e-6 * abs(exact).max())
