"""Sessions of ONNX Runtime's API on a GPU: arrays of other packages are bound, not copied."""

import gc
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import braid.onnxruntime as ort
from test.run.cuda.conftest import TARGET, Driver
from test.run.cuda.gpu_tensors import Package
from test.run.cuda.test_dlpack import COPIES, W, X


@pytest.fixture
def package(driver: Driver) -> Generator[Package]:
    made = Package(driver)
    yield made
    gc.collect()
    made.close()
    driver.check()


def session() -> ort.InferenceSession:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["xw"]), helper.make_node("Relu", ["xw"], ["y"])],
        "product",
        [value("x", TensorProto.FLOAT, X.shape)],
        [value("y", TensorProto.FLOAT, (8, 32))],
        [numpy_helper.from_array(W, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.add_session_config_entry("braid.target", TARGET)
    return ort.InferenceSession(model.SerializeToString(), options)


def bound(form: str, array: Any, bind: Any, bind_address: Any, name: str) -> None:
    if form == "value":
        bind(name, ort.OrtValue.from_dlpack(array))
    else:
        bind_address(name, "cuda", 0, np.float32, array.shape, array.address)


@pytest.mark.parametrize("form", ["value", "address"])
def test_nothing_is_copied(driver: Driver, package: Package, form: str) -> None:
    made = session()
    assert made.get_providers() == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    x, y = package.tensor(X), package.tensor(np.zeros((8, 32), np.float32))
    binding = made.io_binding()
    bound(form, x, binding.bind_ortvalue_input, binding.bind_input, "x")
    bound(form, y, binding.bind_ortvalue_output, binding.bind_output, "y")
    before = driver.calls()
    for _ in range(3):
        made.run_with_iobinding(binding)
    assert not COPIES & set(driver.calls()[len(before) :])
    np.testing.assert_allclose(package.values(y), np.maximum(X @ W, 0), rtol=1e-4, atol=1e-5)
    (result,) = binding.get_outputs()
    assert (result.device_name(), result.data_ptr()) == ("cuda", y.address)


def test_arrays_here_are_taken_too(driver: Driver, package: Package) -> None:
    made = session()
    expected = np.maximum(X @ W, 0)
    np.testing.assert_allclose(made.run(None, {"x": X})[0], expected, rtol=1e-4, atol=1e-5)
    value = ort.OrtValue.from_dlpack(package.tensor(X))
    np.testing.assert_allclose(made.run(None, {"x": value})[0], expected, rtol=1e-4, atol=1e-5)
