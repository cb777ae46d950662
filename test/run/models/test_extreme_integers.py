"""The least and the largest integers of every type, as constants and as inputs, in every role."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import braid

Array = np.ndarray
TYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def model(
    nodes: Sequence[NodeProto], x: Array, constants: dict[str, Array], outputs: Sequence[int]
) -> ModelProto:
    """Nodes that read `x` and write `y0`, `y1` … of these types."""
    graph = helper.make_graph(
        nodes,
        "integers",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info(f"y{i}", type, None) for i, type in enumerate(outputs)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(made: ModelProto, x: Array, expected: Sequence[Array]) -> None:
    for run in (braid.compile(made, jobs=1), braid.interpret(made)):
        results = run.run_named({"x": x}).values()
        for actual, wanted in zip(results, expected, strict=True):
            assert actual.dtype == wanted.dtype
            np.testing.assert_array_equal(actual, wanted)


def numbers(name: str) -> tuple[Any, list[Any]]:
    bounds = np.iinfo(name)
    return np.dtype(name), [bounds.min, bounds.max, bounds.max // 2 + 1]


@pytest.mark.parametrize("name", TYPES)
def test_constants(name: str) -> None:
    """Scalars, vectors, parameters, fill values, bounds and members of ranges."""
    dtype, extremes = numbers(name)
    type = helper.np_dtype_to_tensor_dtype(dtype)
    x = np.zeros(3, dtype)
    nodes: list[NodeProto] = []
    constants: dict[str, Array] = {"widths": np.array([1, 0]), "one": np.array(1, dtype)}
    expected: list[Array] = []

    def add(op: str, inputs: Sequence[str], wanted: Array, **attributes: Any) -> None:
        nodes.append(helper.make_node(op, inputs, [f"y{len(expected)}"], **attributes))
        expected.append(wanted)

    for index, number in enumerate(extremes):
        scalar, vector, long = (f"{kind}{index}" for kind in ("scalar", "vector", "long"))
        constants[scalar] = np.array(number, dtype)
        constants[vector] = np.array([number, 0, 1], dtype)
        constants[long] = np.resize(constants[vector], 3000)
        add("BitwiseOr", ["x", scalar], np.full(3, number, dtype))
        add("BitwiseXor", ["x", vector], constants[vector])
        add("Pad", ["x", "widths", scalar], np.array([number, 0, 0, 0], dtype))
        add("Concat", ["x", long], np.concatenate([x, constants[long]]), axis=0)
        add("Max", ["x", scalar], np.maximum(x, constants[scalar]))
        add("Min", ["x", scalar], np.minimum(x, constants[scalar]))
        end = f"end{index}"
        first, constants[end] = (number - 2, scalar) if number > 2 else (number, None)
        constants[end] = np.array(first + 2, dtype)
        constants[f"first{index}"] = np.array(first, dtype)
        nodes.append(helper.make_node("Range", [f"first{index}", end, "one"], [f"range{index}"]))
        add("Concat", ["x", f"range{index}"], np.array([0, 0, 0, first, first + 1], dtype), axis=0)
    check(model(nodes, x, constants, [type] * len(expected)), x, expected)


@pytest.mark.parametrize("name", TYPES)
def test_comparisons(name: str) -> None:
    """Of inputs that differ in their highest bit: reductions, windows, sorting, products of ops."""
    dtype, extremes = numbers(name)
    type = helper.np_dtype_to_tensor_dtype(dtype)
    x = np.array([*extremes, 0, 1, 2], dtype)
    k = {"k": np.array([6])}
    order = np.argsort(x, kind="stable")
    long = TensorProto.INT64
    cases: list[tuple[str, list[str], dict[str, Any], list[int], list[Array]]] = [
        ("ReduceMax", ["x"], {"keepdims": 0}, [type], [np.array(x.max())]),
        ("ReduceMin", ["x"], {"keepdims": 0}, [type], [np.array(x.min())]),
        ("ArgMax", ["x"], {"keepdims": 0}, [long], [np.array(x.argmax())]),
        ("ArgMin", ["x"], {"keepdims": 0}, [long], [np.array(x.argmin())]),
        ("TopK", ["x", "k"], {"largest": 0}, [type, long], [x[order], order]),
        ("Cast", ["x"], {"to": TensorProto.DOUBLE}, [TensorProto.DOUBLE], [x.astype(float)]),
    ]
    for op, inputs, attributes, outputs, expected in cases:
        names = [f"y{i}" for i in range(len(outputs))]
        node = helper.make_node(op, inputs, names, **attributes)
        check(model([node], x, k, outputs), x, expected)
