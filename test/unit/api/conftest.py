"""Small ONNX models."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


@pytest.fixture(scope="session")
def affine() -> onnx.ModelProto:
    """Compute y = relu(x @ w + b), total = sum(y), on x of 4x8."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((8, 16)).astype(np.float32), "w"),
        numpy_helper.from_array(rng.standard_normal(16).astype(np.float32), "b"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], "matmul"),
        helper.make_node("Add", ["xw", "b"], ["sum"], "add"),
        helper.make_node("Relu", ["sum"], ["y"], "relu"),
        helper.make_node("ReduceSum", ["y"], ["total"], "total", keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "affine",
        [helper.make_tensor_value_info("x", FLOAT, [4, 8])],
        [
            helper.make_tensor_value_info("y", FLOAT, [4, 16]),
            helper.make_tensor_value_info("total", FLOAT, []),
        ],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture
def affine_path(affine: onnx.ModelProto, tmp_path: Path) -> Path:
    onnx.save(affine, tmp_path / "affine.onnx")
    return tmp_path / "affine.onnx"


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)


@pytest.fixture
def expected(affine: onnx.ModelProto) -> Callable[[np.ndarray], np.ndarray]:
    w, b = (numpy_helper.to_array(t) for t in affine.graph.initializer)
    return lambda x: np.maximum(x @ w + b, 0)
