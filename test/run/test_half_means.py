"""Means of 16-bit floats whose sums no such float can hold."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import braid

MEANS: dict[str, dict[str, Any]] = {
    "AveragePool": {"kernel_shape": [7, 7]},
    "GlobalAveragePool": {},
    "ReduceMean": {"axes": [2, 3]},
}


def model(op: str) -> ModelProto:
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape)
        for name, shape in (("x", [1, 8, 7, 7]), ("y", [1, 8, 1, 1]))
    )
    node = helper.make_node(op, ["x"], ["y"], **MEANS[op])
    graph = helper.make_graph([node], "means", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("target", ["host", "gpu-emulated"])
@pytest.mark.parametrize("op", MEANS)
def test_sums_beyond_f16(op: str, target: str) -> None:
    x = np.random.default_rng(0).uniform(2000, 9000, (1, 8, 7, 7)).astype(np.float16)
    (y,) = braid.compile(model(op), target=target).run([x])
    exact = x.astype(np.float64).mean((2, 3), keepdims=True)
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=2**-11)
