"""Windows of pools that are larger than their input, or over padding alone, in three executions."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import braid

X = np.random.default_rng(0).standard_normal((1, 3, 7, 7)).astype(np.float32)
HUGE = {"kernel_shape": [1280, 1280], "strides": [1280, 1280], "ceil_mode": 1}
WIDE = {"kernel_shape": [9, 40], "strides": [1, 3], "pads": [5, 30, 8, 39]}


def pooling(op: str, outputs: int = 1, **attributes: Any) -> ModelProto:
    names = ["y", "indices"][:outputs]
    made = [
        helper.make_tensor_value_info(name, type, None)
        for name, type in zip(names, (TensorProto.FLOAT, TensorProto.INT64), strict=False)
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    node = helper.make_node(op, ["x"], names, **attributes)
    graph = helper.make_graph([node], "pool", given, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool", "LpPool"])
@pytest.mark.parametrize("attributes", [HUGE, WIDE], ids=["huge", "wide"])
def test_windows_larger_than_the_input(op: str, attributes: dict[str, Any]) -> None:
    if op == "AveragePool":
        attributes = {**attributes, "count_include_pad": int(attributes is WIDE)}
    model = pooling(op, **attributes)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})[0]
    for run in (braid.compile(model, jobs=1), braid.interpret(model)):
        np.testing.assert_allclose(run(X), expected, rtol=1e-5, atol=1e-6)


def test_indices_in_windows_larger_than_the_input() -> None:
    model = pooling("MaxPool", 2, **HUGE)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    values, indices = session.run(None, {"x": X})
    compiled = braid.compile(model, jobs=1).run_named({"x": X})
    np.testing.assert_array_equal(compiled["y"], values)
    np.testing.assert_array_equal(compiled["indices"], indices)


def test_the_average_of_padding_alone_is_zero() -> None:
    model = pooling("AveragePool", kernel_shape=[2, 2], strides=[2, 2], pads=[3, 3, 3, 3])
    for run in (braid.compile(model, jobs=1), braid.interpret(model)):
        y = run(X)
        assert np.isfinite(y).all()
        assert not y[..., 0, :].any()
        np.testing.assert_allclose(y[..., 1, 1], X[..., 0, 0], rtol=1e-6)
