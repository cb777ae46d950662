"""Values and bindings behave as those of ONNX Runtime."""

from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import braid.onnxruntime as own
from test.run.cuda.gpu_tensors import GpuTensor
from test.unit.onnxruntime.conftest import expected

TYPES = [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint16, np.bool_]


@pytest.fixture
def session(ort: ModuleType, path: Path) -> Any:
    return ort.InferenceSession(path)


@pytest.mark.parametrize("dtype", TYPES)
def test_what_a_value_says(ort: ModuleType, dtype: Any) -> None:
    import onnxruntime

    array = np.ones((2, 3), dtype)
    value, real = (m.OrtValue.ortvalue_from_numpy(array) for m in (ort, onnxruntime))
    for name in (
        *("shape", "data_type", "element_type", "device_name", "tensor_size_in_bytes"),
        *("has_value", "is_tensor", "is_sparse_tensor", "is_tensor_sequence", "data_ptr"),
        "__dlpack_device__",
    ):
        assert getattr(value, name)() == getattr(real, name)(), name
    np.testing.assert_array_equal(value.numpy(), array)
    np.testing.assert_array_equal(np.asarray(value), array)


def test_values_share_memory(ort: ModuleType) -> None:
    array = np.zeros((2, 3), np.float32)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    array[0, 0] = 7
    assert value.numpy()[0, 0] == 7
    value.update_inplace(np.full((2, 3), 5, np.float32))
    assert (array == 5).all()
    shared = ort.OrtValue.from_dlpack(array)
    array[1, 1] = 9
    assert shared.numpy()[1, 1] == 9
    np.testing.assert_array_equal(np.from_dlpack(shared), array)


@pytest.mark.parametrize("element_type", [np.float32, np.dtype("float32"), 1])
def test_empty_values(ort: ModuleType, element_type: Any) -> None:
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], element_type)
    assert (value.shape(), value.data_type()) == ([2, 3], "tensor(float)")


def test_types_that_numpy_has_not(ort: ModuleType) -> None:
    bits = np.ones((2, 3), np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    assert (value.data_type(), value.element_type()) == ("tensor(bfloat16)", 16)
    if ort is own:
        assert value.numpy().dtype == ml_dtypes.bfloat16


def test_no_memory_of_a_gpu(ort: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="Can't allocate memory on"):
        ort.OrtValue.ortvalue_from_numpy(np.ones(3), "cuda", 0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v: v.ortvalue_from_numpy([1.0]),
        lambda v: v.ortvalue_from_numpy(np.array(["a"])),
        lambda v: v.ortvalue_from_numpy(np.array([b"a"])),
        lambda v: v.ortvalue_from_numpy(np.array(["a"], object)),
        lambda v: v.ortvalue_from_numpy(np.zeros(2, "M8[s]")),
        lambda v: v.ortvalue_from_numpy(np.zeros(2, "f4,i4")),
        lambda v: v.ortvalue_from_numpy(np.zeros(2, np.longdouble)),
        lambda v: v.ortvalue_from_shape_and_type([2], "no type"),
        lambda v: v.ortvalue_from_shape_and_type([2], 99),
        lambda v: v.ortvalue_from_shape_and_type([2], 8),
        lambda v: v.ortvalue_from_shape_and_type([2], np.str_),
        lambda v: v.ortvalue_from_shape_and_type([-2, 3], np.float32),
        lambda v: v.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.float32), 16),
        lambda v: v.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.float32), 99),
    ],
)
def test_wrong_values(ort: ModuleType, wrong: Any) -> None:
    with pytest.raises(RuntimeError):
        wrong(ort.OrtValue)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v: v.ortvalue_from_shape_and_type("ab", np.float32),
        lambda v: v.ortvalue_from_shape_and_type([2.5], np.float32),
        lambda v: v.from_dlpack(3),
    ],
)
def test_values_of_wrong_types(ort: ModuleType, wrong: Any) -> None:
    with pytest.raises(TypeError):
        wrong(ort.OrtValue)


def test_swapped_bytes_are_refused(path: Path, feed: dict[str, Any]) -> None:
    """ONNX Runtime takes them as if they were in order, and computes with other numbers."""
    swapped = feed["x"].astype(">f4")
    with pytest.raises(RuntimeError, match="of swapped bytes"):
        own.OrtValue.ortvalue_from_numpy(swapped)
    with pytest.raises(Exception, match=r"Actual: \(tensor\(float\) of swapped bytes\)"):
        own.InferenceSession(path).run(None, {**feed, "x": swapped})


def test_arrays_that_are_no_numbers(session: Any, feed: dict[str, Any]) -> None:
    for x in (feed["x"].astype(object), np.array([["a"]])):
        with pytest.raises(Exception, match=r"Actual: \(tensor\(string\)\) , expected"):
            session.run(None, {**feed, "x": x})


def test_updates(ort: ModuleType) -> None:
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    value.update_inplace(np.arange(6, dtype=np.float32)[::2])
    assert value.numpy().tolist() == [0, 2, 4]
    value.update_inplace(np.ones((3, 1), np.float32))
    assert value.numpy().tolist() == [1, 1, 1]
    for data in (np.zeros(4, np.float32), np.zeros(2, np.float32), np.array(["a", "b", "c"])):
        with pytest.raises(RuntimeError):
            value.update_inplace(data)
    with pytest.raises(TypeError):
        value.update_inplace([1.0, 2.0, 3.0])


def test_updates_of_another_type() -> None:
    value = own.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    with pytest.raises(RuntimeError, match="the value has shape"):
        value.update_inplace(np.zeros(3))
    value = own.OrtValue.ortvalue_from_numpy(np.broadcast_to(np.float32(0), 3).copy())
    value.numpy().flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        value.update_inplace(np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"shape": (-5, 3)}, RuntimeError),
        ({"shape": (2.5, 3)}, TypeError),
        ({"shape": 6}, TypeError),
        ({"shape": "ab"}, TypeError),
        ({"element_type": np.str_}, RuntimeError),
        ({"device_id": "a"}, TypeError),
        ({"device_type": "xpu"}, Exception),
        ({"buffer_ptr": 5.5}, TypeError),
    ],
)
def test_wrong_addresses(
    session: Any, x: np.ndarray, change: dict[str, Any], error: type[Exception]
) -> None:
    right = {
        "device_type": "cpu",
        "device_id": 0,
        "element_type": np.float32,
        "shape": x.shape,
        "buffer_ptr": x.ctypes.data,
    }
    with pytest.raises(error):
        session.io_binding().bind_input("x", **{**right, **change})
    if change.get("element_type") is np.str_:  # which the other takes for an output
        return
    with pytest.raises(error):
        session.io_binding().bind_output("y", **{**right, **change})


def test_no_memory_is_at_address_0(ort: ModuleType, session: Any, x: np.ndarray) -> None:
    binding = session.io_binding()
    with pytest.raises(RuntimeError, match="Pointer to data memory is not valid"):
        binding.bind_output("y", "cpu", 0, np.float32, (5, 4), 0)
    binding.bind_input("x", "cpu", 0, np.float32, (0, 3), 0)  # nothing is read there
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, np.int64(x.ctypes.data))
    if ort is own:  # the other reads there, and ends the process
        for address in (0, -8):
            with pytest.raises(RuntimeError, match="Pointer to data memory is not valid"):
                binding.bind_input("x", "cpu", 0, np.float32, x.shape, address)


def bind_inputs(ort: ModuleType, binding: Any, feed: dict[str, Any]) -> None:
    binding.bind_cpu_input("x", feed["x"])
    binding.bind_ortvalue_input("factor", ort.OrtValue.ortvalue_from_numpy(feed["factor"]))


def test_binding(ort: ModuleType, session: Any, feed: dict[str, Any], x: np.ndarray) -> None:
    binding = session.io_binding()
    bind_inputs(ort, binding, feed)
    binding.bind_output("total")
    binding.bind_output("y", "cpu")
    session.run_with_iobinding(binding)
    total, y = binding.copy_outputs_to_cpu()
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total, expected(x).sum(), rtol=1e-5)
    assert [value.shape() for value in binding.get_outputs()] == [[], [5, 4]]
    x[:] = 1  # is bound where it is
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.get_outputs()[1].numpy(), expected(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("everything", [True, False])
def test_bound_memory(
    ort: ModuleType, session: Any, feed: dict[str, Any], x: np.ndarray, everything: bool
) -> None:
    """All outputs are written in place, or one of them."""
    y, total, turned = (np.zeros(s, np.float32) for s in ((5, 4), (), (4, 5)))
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_cpu_input("factor", feed["factor"])
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    if everything:
        binding.bind_ortvalue_output("total", ort.OrtValue.ortvalue_from_numpy(total))
        binding.bind_output("turned", "cpu", 0, 1, turned.shape, turned.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
    if everything:
        np.testing.assert_allclose(total, y.sum(), rtol=1e-5)
        np.testing.assert_array_equal(turned, y.T)
    binding.clear_binding_outputs()
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert len(binding.get_outputs()) == 1


WRONG: dict[str, Any] = {
    "no input": lambda s, b, f: s.run_with_iobinding(b),
    "no output": lambda s, b, f: (b.clear_binding_outputs(), s.run_with_iobinding(b)),
    "unknown input": lambda s, b, f: b.bind_cpu_input("z", f["x"]),
    "wrong type": lambda s, b, f: (
        b.bind_cpu_input("factor", f["factor"]),
        b.bind_cpu_input("x", f["x"].astype(np.float64)),
        s.run_with_iobinding(b),
    ),
    "small output": lambda s, b, f: (
        b.bind_cpu_input("factor", f["factor"]),
        b.bind_output("y", "cpu", 0, np.float32, (2, 4), SMALL.ctypes.data),
        s.run_with_iobinding(b),
    ),
}
SMALL = np.zeros((2, 4), np.float32)


@pytest.mark.parametrize("mistake", WRONG)
def test_wrong_bindings(session: Any, feed: dict[str, Any], mistake: str) -> None:
    binding = session.io_binding()
    binding.bind_cpu_input("x", feed["x"])
    binding.bind_output("total")
    with pytest.raises(RuntimeError):
        WRONG[mistake](session, binding, feed)


def test_a_binding_of_another_session(ort: ModuleType, session: Any, path: Path) -> None:
    with pytest.raises(ValueError, match="must be used with the session that created it"):
        session.run_with_iobinding(ort.InferenceSession(path).io_binding())


def test_an_address_needs_a_type(session: Any) -> None:
    with pytest.raises(ValueError, match="`element_type` and `shape` are to be provided"):
        session.io_binding().bind_output("y", buffer_ptr=64)


def test_arrays_on_a_gpu(path: Path, feed: dict[str, Any]) -> None:
    """They are described and kept without copies; a model on the CPU does not take them."""
    x = feed["x"]
    given = GpuTensor(x.ctypes.data, x.dtype, x.shape, device=1)  # is never read there
    value = own.OrtValue.from_dlpack(given)
    assert (value.device_name(), value.__dlpack_device__()) == ("cuda", (2, 1))
    assert (value.shape(), value.data_ptr()) == ([5, 3], x.ctypes.data)
    with pytest.raises(RuntimeError, match="in the memory of GPU 1"):
        value.numpy()
    session = own.InferenceSession(path)
    with pytest.raises(Exception, match="GPU 1"):
        session.run(None, {**feed, "x": value})
    binding = session.io_binding()
    with pytest.raises(RuntimeError, match="cannot be allocated on 'cuda'"):
        binding.bind_output("y", "cuda")
