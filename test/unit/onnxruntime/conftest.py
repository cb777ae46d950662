"""ONNX Runtime and what stands for it: tests that take `ort` say what holds of both."""

from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import braid.onnxruntime
import braid.onnxruntime.capi.onnxruntime_pybind11_state

WEIGHTS = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.fixture(params=[onnxruntime, braid.onnxruntime], ids=["onnxruntime", "braid"])
def ort(request: pytest.FixtureRequest) -> ModuleType:
    return request.param


@pytest.fixture(scope="session")
def proto() -> onnx.ModelProto:
    """Of x (batch by 3) and a scalar: y = relu(x w) * factor, and total, the sum of y."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], "product"),
        helper.make_node("Relu", ["xw"], ["positive"], "relu"),
        helper.make_node("Mul", ["positive", "factor"], ["y"], "scale"),
        helper.make_node("ReduceSum", ["y"], ["total"], "sum", keepdims=0),
        helper.make_node("Transpose", ["y"], ["turned"], "turn"),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "scaled",
        [value("x", TensorProto.FLOAT, ["batch", 3]), value("factor", TensorProto.FLOAT, [])],
        [
            value("y", TensorProto.FLOAT, ["rows", 4]),
            value("total", TensorProto.FLOAT, []),
            helper.make_tensor_value_info("turned", TensorProto.FLOAT, None),
        ],
        [numpy_helper.from_array(WEIGHTS, "w")],
        doc_string="a graph",
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
        producer_name="a test",
        domain="org.example",
        doc_string="a model",
        model_version=7,
    )
    helper.set_model_props(model, {"character": "a\nb", "": "empty"})
    return model


@pytest.fixture(scope="session")
def path(proto: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "scaled.onnx"
    onnx.save(proto, path)
    return path


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32)


@pytest.fixture
def feed(x: np.ndarray) -> dict[str, np.ndarray]:
    return {"x": x, "factor": np.array(2, np.float32)}


def expected(x: np.ndarray, factor: float = 2) -> np.ndarray:
    return factor * np.maximum(x @ WEIGHTS, 0)
