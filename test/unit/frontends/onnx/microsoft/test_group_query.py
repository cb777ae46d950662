"""`GroupQueryAttention` and `RotaryEmbedding`: random nodes beside ONNX Runtime."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from braid.passes.sizes.bind_sizes import bind_sizes
from test.unit.frontends.onnx.microsoft.harness import (
    Array,
    Case,
    Fixed,
    Generator,
    Rng,
    check_many,
    check_random,
    compare,
    floats,
    onnx_runtime,
    quick_cases,
    refusal,
)

POSITIONS = 24


def caches(rng: Rng, columns: int, kind: Any = np.float32) -> list[Array]:
    angles = rng.uniform(0, 6, (POSITIONS, columns))
    return [np.cos(angles).astype(kind), np.sin(angles).astype(kind)]


def rotary(rng: Rng) -> Case:
    batch, length, heads, half = (int(n) for n in rng.integers(1, 6, 4))
    kind = np.float16 if rng.random() < 0.3 else np.float32
    is_partial = rng.random() < 0.4
    size = 2 * half + (2 * int(rng.integers(1, 4)) if is_partial else 0)
    attributes: dict[str, Any] = {"interleaved": int(rng.integers(0, 2))}
    if is_partial:
        attributes |= {"num_heads": heads, "rotary_embedding_dim": 2 * half}
    by_head = rng.random() < 0.5
    shape = [batch, heads, length, size] if by_head else [batch, length, heads * size]
    if rng.random() < 0.5:
        places = rng.integers(0, POSITIONS, (batch, length))
    else:
        places = rng.integers(0, POSITIONS - length, (1,))
    one = places.ndim == 1
    return Case(
        [floats(rng, *shape, kind=kind), places, *map(Fixed, caches(rng, half, kind))],
        attributes,
        tolerance=2e-3 if kind == np.float16 else 2e-5,
        names={
            0: ["b", heads, "s", size] if by_head else ["b", "s", heads * size],
            1: [1] if one else ["b", "s"],
        },
    )


def group_query(rng: Rng) -> Case:
    """Return a prompt, a token for each of a batch whose caches differ in length, or a chunk of
    one."""
    form = rng.integers(0, 3)
    batch = int(rng.integers(1, 4)) if form < 2 else 1
    length = 1 if form == 1 else int(rng.integers(1, 6))
    past = 0 if form == 0 else int(rng.integers(1, 6))
    shared, group, half = (int(n) for n in rng.integers(1, 4, 3))
    is_turned = rng.random() < 0.5
    # ONNX Runtime turns heads of a multiple of 16 columns.
    heads, size = shared * group, (16 if is_turned else 8) * half
    total = past + length
    kind = np.float16 if rng.random() < 0.2 else np.float32
    counts = np.full(batch, total - 1, np.int32)
    if form == 1 and batch > 1:
        counts = rng.integers(0, total, batch).astype(np.int32)
        counts[rng.integers(0, batch)] = total - 1
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": shared}
    if rng.random() < 0.3:
        attributes["scale"] = float(rng.uniform(0.1, 1))
    if rng.random() < 0.3:
        attributes["softcap"] = float(rng.uniform(1, 5))
    if rng.random() < 0.3:
        attributes["local_window_size"] = int(rng.integers(1, 5))
    elif rng.random() < 0.2:
        attributes["causal"] = 0
    if rng.random() < 0.3:
        attributes["smooth_softmax"] = int(rng.integers(0, 2))
    tables: list[Any] = [None, None]
    if is_turned:
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(rng.integers(0, 2))}
        tables = [Fixed(t) for t in caches(rng, size // 2, kind)]
    is_packed = rng.random() < 0.3
    columns = [heads * size, shared * size, shared * size]
    rows = [floats(rng, batch, length, n, kind=kind) for n in columns]
    inputs = [np.concatenate(rows, -1), None, None] if is_packed else rows
    cache = [floats(rng, batch, shared, past, size, kind=kind) if past else None for _ in (0, 1)]
    bias = floats(rng, 1, heads, length, total, kind=kind) if rng.random() < 0.2 else None
    sink = floats(rng, heads, kind=kind) if rng.random() < 0.2 else None
    if sink is not None:
        attributes.pop("smooth_softmax", None)
    names = {i: ["b", "s", n] for i, n in enumerate([sum(columns)] if is_packed else columns)}
    names |= {3 + i: ["b", shared, "p", size] for i in (0, 1)}
    return Case(
        [
            *(*inputs, *cache, counts, Fixed(np.array([total], np.int32)), *tables),
            *(None, bias, None if sink is None else Fixed(sink)),
        ],
        attributes,
        (0, 1, 2),
        tolerance=3e-3 if kind == np.float16 else 1e-4,
        names=names | {5: ["b"], 10: [1, heads, "s", "t"]},
    )


GENERATORS: dict[str, Generator] = {
    "GroupQueryAttention": group_query,
    "RotaryEmbedding": rotary,
}


@quick_cases(GENERATORS)
def test_random_nodes(op: str, seed: int) -> None:
    check_random(op, GENERATORS[op], seed)


@pytest.mark.slow
@pytest.mark.parametrize("op", GENERATORS)
def test_many_random_nodes(op: str) -> None:
    check_many(op, GENERATORS[op])


def case(**attributes: Any) -> Case:
    rng = np.random.default_rng(0)
    rows = [floats(rng, 1, 2, columns) for columns in (32, 16, 16)]
    counts = [np.array([1], np.int32), Fixed(np.array([2], np.int32))]
    return Case([*rows, None, None, *counts], {"num_heads": 4, "kv_num_heads": 2} | attributes)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"kv_num_heads": 3}, "'num_heads' is 4, no multiple of 'kv_num_heads', 3"),
        ({"sliding_window_cache": 1}, "attribute 'sliding_window_cache' is not 0"),
        ({"k_quant_type": "PER_TENSOR"}, "attribute 'k_quant_type' is 'PER_TENSOR'"),
        ({"causal": 0, "local_window_size": 3}, "attribute 'local_window_size' needs 'causal'"),
        ({"do_rotary": 1}, "input 7 is missing"),
    ],
)
def test_refused(attributes: dict[str, Any], message: str) -> None:
    refusal("GroupQueryAttention", case(**attributes), message)


def decoder() -> ModelProto:
    """Attention as exporters write it: lengths are those of a mask, and all dims are open."""
    rng, node = np.random.default_rng(0), helper.make_node
    nodes = [
        node("ReduceSum", ["mask", "axis"], ["count"], keepdims=0),
        node("Sub", ["count", "axis"], ["last"]),
        node("Cast", ["last"], ["last32"], to=TensorProto.INT32),
        node("Shape", ["mask"], ["shape"]),
        node("Gather", ["shape", "one"], ["length"]),
        node("Cast", ["length"], ["total"], to=TensorProto.INT32),
        node("MatMul", ["x", "wq"], ["q"]),
        node("MatMul", ["x", "wk"], ["k"]),
        node("MatMul", ["x", "wv"], ["v"]),
        node(
            "GroupQueryAttention",
            ["q", "k", "v", "past_k", "past_v", "last32", "total", "cos", "sin"],
            ["y", "present_k", "present_v"],
            domain="com.microsoft",
            num_heads=4,
            kv_num_heads=2,
            do_rotary=1,
        ),
    ]
    constants = {
        "axis": np.array([1]),
        "one": np.array(1),
        "wq": floats(rng, 32, 64),
        "wk": floats(rng, 32, 32),
        "wv": floats(rng, 32, 32),
        **dict(zip(("cos", "sin"), caches(rng, 8), strict=True)),
    }
    cache = ["b", 2, "p", 16]
    shapes = {"x": ["b", "s", 32], "past_k": cache, "past_v": cache}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    inputs.append(helper.make_tensor_value_info("mask", TensorProto.INT64, ["b", "t"]))
    outputs = [helper.make_empty_tensor_value_info(n) for n in ("y", "present_k", "present_v")]
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    return helper.make_model(
        helper.make_graph(nodes, "decoder", inputs, outputs, weights),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
    )


@pytest.mark.parametrize(
    ("batch", "length", "past"), [(1, 5, 0), (2, 1, 5), (1, 3, 6), (3, 8, 0), (1, 1, 1)]
)
def test_a_decoder(batch: int, length: int, past: int) -> None:
    """A prompt, a token, and a chunk by one module: the cache grows by an extent of its own."""
    model, rng = decoder(), np.random.default_rng(1)
    inputs = {
        "x": floats(rng, batch, length, 32),
        "past_k": floats(rng, batch, 2, past, 16),
        "past_v": floats(rng, batch, 2, past, 16),
        "mask": np.ones((batch, past + length), np.int64),
    }
    imported = import_onnx(model, keep_open=True)
    bind_sizes(imported.module, {"b": batch, "s": length, "p": past, "t": past + length})
    results = interpret(imported.module, inputs, parameters=imported.parameters)
    for result, wanted in zip(results, onnx_runtime(model, inputs), strict=True):
        compare(result, wanted, Case([], tolerance=1e-4))
