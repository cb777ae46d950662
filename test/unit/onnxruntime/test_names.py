"""What ONNX Runtime's module and classes have is here too, and behaves alike where it can."""

import logging
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest

import braid.onnxruntime as own
from test.unit.onnxruntime.conftest import expected

PRIVATE = {"contextlib", "import_capi_exception", "onnxruntime_validation"}
CLASSES = ("InferenceSession", "IOBinding", "OrtDevice", "OrtValue", "OrtMemoryInfo", "OrtEpDevice")
ENUMERATIONS = [
    *("OrtAllocatorType", "OrtMemType", "OrtDeviceMemoryType", "OrtMemoryInfoDeviceType"),
    *("OrtHardwareDeviceType", "OrtDeviceVendorId", "OrtExecutionProviderDevicePolicy"),
    *("OrtSparseFormat", "OrtCompileApiFlags"),
]


def public(thing: object) -> set[str]:
    """Return names but for those of modules that other tests may have imported."""
    others = {"quantization", "tools", "training", "transformers"}
    return {name for name in dir(thing) if not name.startswith("_")} - others


def test_no_name_of_the_module_is_missing() -> None:
    assert public(onnxruntime) - PRIVATE <= public(own)


@pytest.mark.parametrize("name", CLASSES)
def test_no_name_of_a_class_is_missing(name: str) -> None:
    fields = getattr(getattr(own, name), "__dataclass_fields__", {})
    assert public(getattr(onnxruntime, name)) <= public(getattr(own, name)) | set(fields)


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_enumerations(name: str) -> None:
    real, ours = getattr(onnxruntime, name), getattr(own, name)
    assert {n: int(v.value) for n, v in real.__members__.items()} == {
        n: int(v) for n, v in ours.__members__.items()
    }
    assert set(map(str, real.__members__.values())) == set(map(str, ours.__members__.values()))


def test_options_that_are_enumerations(ort: ModuleType) -> None:
    options = ort.SessionOptions()
    assert str(options.graph_optimization_level) == "GraphOptimizationLevel.ORT_ENABLE_ALL"
    assert f"{options.execution_mode}" == "ExecutionMode.ORT_SEQUENTIAL"
    assert repr(options.execution_order) == "<ExecutionOrder.DEFAULT: 0>"
    assert int(options.graph_optimization_level) == 99


@pytest.mark.parametrize("module", ["onnxruntime", "braid.onnxruntime"])
def test_the_modules_of_capi_are_attributes_at_once(module: str) -> None:
    program = (
        f"import {module} as ort; ort.capi.onnxruntime_pybind11_state.Fail; "
        "state = ort.capi._pybind_state; state.OrtValue, state.OrtDevice, state.InferenceSession; "
        "ort.capi.onnxruntime_inference_collection.Session"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_exceptions_are_those_of_the_module() -> None:
    assert own.capi._pybind_state.Fail is own.capi.onnxruntime_pybind11_state.Fail


def test_devices(ort: ModuleType) -> None:
    for given, numbers in (
        (("cpu", 0), (0, 0, 0, 0)),
        (("cuda", 1), (1, 1, 0, 4318)),
        (("gpu", 0), (1, 0, 0, 0)),
        (("gpu", 0, 4318), (1, 0, 0, 4318)),
        (("npu", 2), (3, 2, 0, 0)),
    ):
        device = ort.OrtDevice.make(*given)
        said = (device.device_type(), device.device_id(), device.device_mem_type())
        assert (*said, device.device_vendor_id()) == numbers
    with pytest.raises(Exception, match="Unsupported device type: xpu"):
        ort.OrtDevice.make("xpu", 0)


def test_memory(ort: ModuleType, path: Path) -> None:
    session = ort.InferenceSession(path)
    infos = [*session.get_input_memory_infos(), *session.get_output_memory_infos()]
    assert len(infos) == 5
    for info in infos:
        assert (info.name, info.device_id, info.device_vendor_id) == ("Cpu", 0, 0)
        assert info.allocator_type == ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR
        assert info.mem_type == ort.OrtMemType.DEFAULT
        assert info.device_mem_type == ort.OrtDeviceMemoryType.DEFAULT
    arena = ort.OrtArenaCfg({"max_mem": 5})
    assert (arena.max_mem, arena.initial_chunk_size_bytes) == (5, -1)
    with pytest.raises(RuntimeError, match="Invalid OrtArenaCfg option: nope"):
        ort.OrtArenaCfg({"nope": 5})
    kind = (ort.OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 1, ort.OrtMemType.DEFAULT)
    assert ort.OrtMemoryInfo("Cuda", *kind).device_vendor_id == 4318
    with pytest.raises(RuntimeError, match="Try CreateMemoryInfo_V2"):
        ort.OrtMemoryInfo("nope", *kind)
    own.create_and_register_allocator(own.OrtMemoryInfo("Cpu", *own_kind()), own.OrtArenaCfg({}))


def own_kind() -> tuple[Any, int, Any]:
    return own.OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, own.OrtMemType.DEFAULT


def test_providers_of_inputs(ort: ModuleType, path: Path) -> None:
    found = ort.InferenceSession(path).get_input_epdevices()
    assert [each.ep_name for each in found] == ["CPUExecutionProvider"] * 2
    (device,) = ort.get_ep_devices()
    assert (device.ep_name, device.device.type) == (
        "CPUExecutionProvider",
        ort.OrtHardwareDeviceType.CPU,
    )


def test_what_has_no_effect_on_a_session(ort: ModuleType, path: Path) -> None:
    session = ort.InferenceSession(path)
    assert session.get_tuning_results() == []
    result = {"ep": "x", "results": {}, "validators": {}}
    session.set_tuning_results([result])
    with pytest.raises(RuntimeError, match="Cannot find execution provider x"):
        session.set_tuning_results([result], error_on_invalid=True)
    session.set_ep_dynamic_options({"a": "b"})
    with pytest.raises(RuntimeError, match="No options were provided"):
        session.set_ep_dynamic_options({})
    with pytest.raises(TypeError):
        session.set_ep_dynamic_options(3)
    session.release_captured_graph()
    with pytest.raises(Exception, match="graph_assignment_info"):
        session.get_provider_graph_assignment_info()
    assert session.create_ortvalue_from_shape_and_type([2], np.float32, "cpu").shape() == [2]


def test_functions(ort: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert (ort.package_name, ort.version, ort.cuda_version) == ("onnxruntime", "1.32.0", "")
    assert ort.has_collective_ops() is False
    ort.preload_dlls()
    with pytest.raises(TypeError):
        ort.set_global_thread_pool_sizes("a")
    with pytest.raises(TypeError):
        ort.set_default_logger_severity("a")
    with pytest.raises(TypeError):
        ort.set_seed(2.5)
    ort.set_seed(np.int64(2))
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match="a was not registered"):
        ort.unregister_execution_provider_library("a")
    own.set_global_thread_pool_sizes(2, 2)
    own.print_debug_info()
    assert "braid==" in capsys.readouterr().out


def test_messages_are_given_to_a_function(ort: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="callback must be a callable"):
        ort.set_default_logger_callback(3)
    with pytest.raises(RuntimeError, match="Invalid logging severity"):
        ort.set_default_logger_callback(None, 9)
    if ort is not own:
        return
    logger, found = logging.getLogger("braid"), list[Any]()
    before = logger.level
    try:
        own.set_default_logger_callback(lambda *said: found.append(said), 0)
        own.set_seed(3)
        assert [(each[0], each[1], each[4]) for each in found] == [
            (0, "braid", "set_seed(3) has no effect")
        ]
        own.set_default_logger_callback(None)
        own.set_seed(3)
        assert len(found) == 1
    finally:
        logger.setLevel(before)


@pytest.mark.parametrize("name", ["SparseTensor", "LoraAdapter", "ModelCompiler", "OrtSyncStream"])
def test_what_has_no_meaning_is_refused_when_it_is_made(name: str) -> None:
    with pytest.raises(own.capi.onnxruntime_pybind11_state.NotImplemented, match=name):
        getattr(own, name)(None)
    assert not isinstance(3, getattr(own, name))


def state(ort: ModuleType) -> Any:
    return ort.capi._pybind_state


def vector(ort: ModuleType, *arrays: np.ndarray) -> Any:
    values, cpu = state(ort).OrtValueVector(), state(ort).OrtDevice(0, 0, 0)
    for array in arrays:
        values.push_back(state(ort).OrtValue.ortvalue_from_numpy(array, cpu))
    return values


def test_vectors_of_values(
    ort: ModuleType, path: Path, feed: dict[str, Any], x: np.ndarray
) -> None:
    session = ort.InferenceSession(path)
    cpu, options = state(ort).OrtDevice(0, 0, 0), ort.RunOptions()
    feeds, results = vector(ort, x, feed["factor"]), state(ort).OrtValueVector()
    session.run_with_ortvaluevector(options, ["x", "factor"], feeds, ["y"], results, [cpu])
    assert len(results) == 1 and results.element_type_at(0) == 1
    np.testing.assert_allclose(results[0].numpy(), expected(x), rtol=1e-5, atol=1e-6)
    errors = state(ort)
    for names, outputs in ((["x", "z"], ["y"]), (["x"], ["y"]), (["x", "factor"], ["q"])):
        with pytest.raises(errors.InvalidArgument):
            made = errors.OrtValueVector()
            session.run_with_ortvaluevector(options, names, feeds, outputs, made, [cpu])
    with pytest.raises(TypeError):
        session.run_with_ortvaluevector(options, ["x"], [x], ["y"], results, [cpu])
    with pytest.raises(IndexError):
        results[5]


def test_bound_results_as_a_vector(
    ort: ModuleType, path: Path, feed: dict[str, Any], x: np.ndarray
) -> None:
    session = ort.InferenceSession(path)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_cpu_input("factor", feed["factor"])
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    found = binding.get_outputs_as_ortvaluevector()
    assert [each.shape() for each in found] == [[5, 4]]
    raw = ort.SessionIOBinding(session._sess)
    raw.bind_input("x", x)
    device = state(ort).OrtDevice(0, 0, 0)
    raw.bind_input("factor", device, np.float32, [], feed["factor"].ctypes.data)
    raw.bind_output("y", device)
    session._sess.run_with_iobinding(raw, None)
    np.testing.assert_allclose(raw.get_outputs()[0].numpy(), expected(x), rtol=1e-5, atol=1e-6)


def test_copies_of_values(ort: ModuleType, x: np.ndarray) -> None:
    with pytest.raises(RuntimeError, match="Invalid arguments provided to CopyTensors"):
        ort.copy_tensors([], [])
    if ort is own:  # the other's package for CPUs copies nothing
        source, target = map(own.OrtValue.ortvalue_from_numpy, (x, np.zeros_like(x)))
        own.copy_tensors([source], [target])
        np.testing.assert_array_equal(target.numpy(), x)
        with pytest.raises(RuntimeError):
            own.copy_tensors([source], [])


@pytest.mark.parametrize("options", [{"a": 1}, 3, "x", own.SessionOptions()])
def test_wrong_options_of_a_run(path: Path, feed: dict[str, Any], options: Any) -> None:
    session = own.InferenceSession(path)
    for run in (
        lambda: session.run(None, feed, options),
        lambda: session.run_with_ort_values(None, feed, options),
        lambda: session.run_async(None, feed, print, None, options),
        lambda: session.run_with_iobinding(session.io_binding(), options),
    ):
        with pytest.raises(TypeError, match="run_options is a"):
            run()


def test_wrong_arguments_of_runs(ort: ModuleType, path: Path, feed: dict[str, Any]) -> None:
    session = ort.InferenceSession(path)
    with pytest.raises(TypeError):
        session.run(None, feed, {"a": 1})
    with pytest.raises(TypeError):
        session.run_async(None, feed, 3, None)
    for wrong in (lambda: session.run_with_iobinding(None), lambda: ort.IOBinding(None)):
        with pytest.raises((TypeError, AttributeError)) as raised:
            wrong()
        assert ort is not own or isinstance(raised.value, TypeError)
