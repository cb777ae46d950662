"""Options that are converted, ignored or refused, and weights in other files."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import braid.onnxruntime as own
from test.unit.onnxruntime.conftest import expected

FOLDER = "session.model_external_initializers_file_folder_path"


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("intra_op_num_threads", np.int64(2), 2),
        ("intra_op_num_threads", np.array(2), 2),
        ("intra_op_num_threads", True, 1),
        ("enable_profiling", 1, True),
        ("enable_profiling", None, False),
        ("enable_profiling", np.True_, True),
        ("enable_mem_pattern", 0, False),
        ("logid", b"abc", "abc"),
        ("logid", np.str_("a"), "a"),
    ],
)
def test_values_are_converted(ort: ModuleType, name: str, value: object, kept: object) -> None:
    options = ort.SessionOptions()
    setattr(options, name, value)
    assert getattr(options, name) == kept and type(getattr(options, name)) is type(kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("intra_op_num_threads", 2.0),
        ("intra_op_num_threads", 2**40),
        ("enable_profiling", "a"),
        ("enable_profiling", [1]),
        ("profile_file_prefix", Path("a")),
        ("execution_mode", 1),
    ],
)
def test_values_that_are_not(ort: ModuleType, name: str, value: object) -> None:
    with pytest.raises(TypeError):
        setattr(ort.SessionOptions(), name, value)


def test_options_of_a_run_are_converted(ort: ModuleType) -> None:
    options = ort.RunOptions()
    options.terminate = 1
    options.log_severity_level = np.int64(2)
    assert (options.terminate, options.log_severity_level) == (True, 2)


@pytest.mark.parametrize("name", ["intra_op_num_threads", "inter_op_num_threads"])
def test_negative_threads_are_all(ort: ModuleType, path: Path, name: str) -> None:
    options = ort.SessionOptions()
    setattr(options, name, -1)
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    ort.InferenceSession(path, options)


@pytest.mark.parametrize(
    ("name", "size", "shape"),
    [
        ("zz", 3, ["batch", 3]),
        ("batch", np.int64(4), [4, 3]),
        ("batch", True, [1, 3]),
    ],
)
def test_overrides(ort: ModuleType, path: Path, name: str, size: Any, shape: list[Any]) -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name(name, size)
    options.add_free_dimension_override_by_denotation("NONE_HAS_IT", 3)
    assert ort.InferenceSession(path, options).get_inputs()[0].shape == shape


def test_overrides_of_what_a_dim_denotes(ort: ModuleType, proto: onnx.ModelProto) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 4)
    session = ort.InferenceSession(model.SerializeToString(), options)
    assert session.get_inputs()[0].shape == [4, 3]


@pytest.mark.parametrize(("name", "size"), [("batch", 2.0), ("batch", "3"), (3, 3)])
def test_wrong_overrides(ort: ModuleType, name: Any, size: Any) -> None:
    with pytest.raises(TypeError):
        ort.SessionOptions().add_free_dimension_override_by_name(name, size)


WRONG = {
    "braid.numerics": ("zz", r"braid\.numerics is 'zz'"),
    "braid.target": ("gpu-zz", r"'braid\.target' is 'gpu-zz': there is no target"),
    "braid.cpu": ("zz", r"'braid\.cpu' is 'zz': there is no CPU"),
    "braid.jobs": ("0", r"braid\.jobs is 0"),
    "braid.threads": ("x", r"'braid\.threads' is 'x', expected a whole number"),
    "braid.memory_budget": ("zz", "memory budget 'zz' is not a size"),
    "braid.shapes": ("zz=3", "there is no input 'zz'"),
    "braid.dims": ("zz=3", "no open dim 'zz'"),
    "braid.shape_buckets": ("zz=1,2", "no open dim 'zz'"),
    "braid.shape_bounds": ("batch=x", "expected DIM=SIZE"),
    "braid.constants": ("zz=3", "there is no input 'zz'"),
}


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_entry(path: Path, key: str) -> None:
    text, said = WRONG[key]
    options = own.SessionOptions()
    options.add_session_config_entry(key, text)
    errors = own.capi.onnxruntime_pybind11_state
    with pytest.raises(errors.InvalidArgument, match=said) as raised:
        own.InferenceSession(path, options)
    assert not any(f" {key.partition('.')[2]}{sign}" in str(raised.value) for sign in "=")


def test_entries_with_names(path: Path, feed: dict[str, Any], x: np.ndarray) -> None:
    options = own.SessionOptions()
    options.add_session_config_entry("braid.shapes", "x=5,3")
    options.add_session_config_entry("braid.constants", "factor=2")
    session = own.InferenceSession(path, options)
    assert [(arg.name, arg.shape) for arg in session.get_inputs()] == [("x", [5, 3])]
    np.testing.assert_allclose(session.run(["y"], {"x": x})[0], expected(x), rtol=1e-5, atol=1e-6)


def shapeless() -> bytes:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, None)],
        [value("y", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_an_input_without_a_shape(ort: ModuleType, x: np.ndarray) -> None:
    options = ort.SessionOptions()
    if ort is own:
        with pytest.raises(Exception, match=r'add_session_config_entry\("braid\.shapes", "x='):
            own.InferenceSession(shapeless())
        options.add_session_config_entry("braid.shapes", "x=5,3")
    (y,) = ort.InferenceSession(shapeless(), options).run(None, {"x": x})
    np.testing.assert_array_equal(y, np.maximum(x, 0))


@pytest.fixture
def apart(proto: onnx.ModelProto, tmp_path: Path) -> Path:
    """Return a model whose weights are in a separate file."""
    folder = tmp_path / "apart"
    folder.mkdir()
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    onnx.save_model(
        model, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0
    )
    return folder / "m.onnx"


def test_weights_in_a_folder(
    ort: ModuleType,
    apart: Path,
    feed: dict[str, Any],
    x: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = apart.read_bytes()
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match="External data path"):
        ort.InferenceSession(data)
    options = ort.SessionOptions()
    options.add_session_config_entry(FOLDER, str(apart.parent))
    found = [ort.InferenceSession(given, options) for given in (data, apart)]
    wrong = ort.SessionOptions()
    wrong.add_session_config_entry(FOLDER, "nowhere")
    for given in (data, apart):
        with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match="External data path"):
            ort.InferenceSession(given, wrong)
    monkeypatch.chdir(apart.parent)
    found.append(ort.InferenceSession(data))
    for session in found:
        (y,) = session.run(["y"], feed)
        np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["[1]", "[1, 1]", "list", "OrtValue"])
def test_one_element_for_an_input_without_dims(
    ort: ModuleType, path: Path, feed: dict[str, Any], x: np.ndarray, form: str
) -> None:
    factor = np.array([2], np.float32)
    given: Any = {
        "[1]": factor,
        "[1, 1]": factor[None],
        "list": [2.0],
        "OrtValue": ort.OrtValue.ortvalue_from_numpy(factor),
    }[form]
    session = ort.InferenceSession(path)
    (y,) = session.run(["y"], {**feed, "factor": given})
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_cpu_input("factor", factor)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], y)
    with pytest.raises(Exception, match=r"Invalid rank|broadcast"):
        session.run(["y"], {**feed, "factor": np.ones(3, np.float32)})
