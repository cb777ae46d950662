"""Options that have an effect, that have none, and that there are not."""

import copy
import logging
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import braid.onnxruntime as own
from braid.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from braid.onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Refused
from braid.support.errors import BraidError
from test.unit.onnxruntime.conftest import expected

ATTRIBUTES = [
    name
    for name in dir(onnxruntime.SessionOptions())
    if not name.startswith("_") and not callable(getattr(onnxruntime.SessionOptions(), name))
]


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_all_attributes_are_there_with_their_defaults(kind: str) -> None:
    real, ours = getattr(onnxruntime, kind)(), getattr(own, kind)()
    for name in dir(real):
        if not name.startswith("_") and not callable(getattr(real, name)):
            default = getattr(real, name)
            default = getattr(default, "name", default)
            found = getattr(ours, name)
            assert getattr(found, "name", found) == default, name
            setattr(ours, name, getattr(ours, name))


@pytest.mark.parametrize("name", ["GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder"])
def test_enumerations(name: str) -> None:
    real, ours = getattr(onnxruntime, name), getattr(own, name)
    assert {n: int(v) for n, v in real.__members__.items()} == {
        n: int(v) for n, v in ours.__members__.items()
    }


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("no_such_option", 1, AttributeError),
        ("intra_op_num_threads", "two", TypeError),
        ("graph_optimization_level", 99, TypeError),
        ("logid", 3, TypeError),
    ],
)
def test_wrong_attributes(
    ort: ModuleType, name: str, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        setattr(ort.SessionOptions(), name, value)


def test_a_hint_says_what_was_meant() -> None:
    with pytest.raises(BraidError, match="did you mean 'intra_op_num_threads'"):
        own.SessionOptions().intra_op_num_thread = 2  # pyright: ignore
    with pytest.raises(BraidError, match=r"did you mean 'session\.disable_prepacking'"):
        own.SessionOptions().add_session_config_entry("session.disable_prepaking", "1")


def test_every_option_without_effect_is_taken(
    path: Path, caplog: pytest.LogCaptureFixture, feed: dict[str, Any], x: np.ndarray
) -> None:
    options = own.SessionOptions()
    changed = {
        "enable_cpu_mem_arena": False,
        "enable_mem_pattern": False,
        "enable_mem_reuse": False,
        "execution_order": own.ExecutionOrder.PRIORITY_BASED,
        "graph_optimization_level": own.GraphOptimizationLevel.ORT_DISABLE_ALL,
        "log_severity_level": 3,
        "log_verbosity_level": 1,
        "logid": "mine",
        "use_deterministic_compute": True,
        "use_per_session_threads": False,
    }
    for name, value in changed.items():
        setattr(options, name, value)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    with caplog.at_level(logging.DEBUG, "braid"):
        session = own.InferenceSession(
            path,
            options,
            providers=[("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})],
            enable_fallback=0,
        )
    said = "\n".join(record.getMessage() for record in caplog.records)
    for name in changed:
        assert f"SessionOptions.{name} = " in said
    for other in ("session.intra_op.allow_spinning", "arena_extend_strategy", "enable_fallback"):
        assert f"'{other}'" in said
    np.testing.assert_allclose(session.run(["y"], feed)[0], expected(x), rtol=1e-5, atol=1e-6)
    assert session.get_session_options() is options


def test_entries(ort: ModuleType) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_prepacking", "1")
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    with pytest.raises(RuntimeError, match=r"have configuration with key: session\.other"):
        options.get_session_config_entry("session.other")
    run = ort.RunOptions()
    run.add_run_config_entry("gpu_graph_id", "-1")
    assert run.get_run_config_entry("gpu_graph_id") == "-1"
    with pytest.raises(TypeError):
        options.add_session_config_entry("session.disable_prepacking", 1)


@pytest.mark.parametrize(
    "refused",
    [
        lambda o: o.add_session_config_entry("session.no_such_key", "1"),
        lambda o: own.RunOptions().add_run_config_entry("no_such_key", "1"),
        lambda o: own.RunOptions().add_active_adapter(None),
        lambda o: o.register_custom_ops_library("lib.so"),
        lambda o: o.add_initializer("w", None),
        lambda o: o.add_external_initializers([], []),
    ],
)
def test_what_would_change_results_is_refused(refused: Any) -> None:
    with pytest.raises(Refused):
        refused(own.SessionOptions())


def test_no_model_of_onnx_is_written(path: Path) -> None:
    options = own.SessionOptions()
    options.optimized_model_filepath = "optimized.onnx"
    with pytest.raises(Refused, match="braid writes no ONNX models"):
        own.InferenceSession(path, options)


def test_arguments_that_there_are_not(path: Path) -> None:
    with pytest.raises(TypeError, match="has no argument 'provider'"):
        own.InferenceSession(path, provider=["CPUExecutionProvider"])
    with pytest.raises(TypeError, match="expected a SessionOptions of braid"):
        own.InferenceSession(path, onnxruntime.SessionOptions())  # pyright: ignore


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_threads(path: Path, threads: int) -> None:
    options = own.SessionOptions()
    options.intra_op_num_threads = threads
    assert own.InferenceSession(path, options).model.threads == threads


def test_fixed_dims(ort: ModuleType, path: Path, feed: dict[str, Any]) -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 5)
    session = ort.InferenceSession(path, options)
    assert session.get_inputs()[0].shape == [5, 3]
    session.run(None, feed)
    with pytest.raises(Exception, match="Got: 4 Expected: 5"):
        session.run(None, {**feed, "x": feed["x"][:4]})


def test_kernels_side_by_side(proto: onnx.ModelProto, path: Path, feed: dict[str, Any]) -> None:
    """Only of known sizes; open ones run one kernel after the other."""
    options = own.SessionOptions()
    options.execution_mode = own.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 2
    own.InferenceSession(path, options).run(None, feed)
    options.add_free_dimension_override_by_name("batch", 5)
    session = own.InferenceSession(path, options)
    session.run(None, feed)
    assert options.compile_options().inter_op_threads == 2


def test_options_of_braid(path: Path) -> None:
    options = own.SessionOptions()
    options.add_session_config_entry("braid.numerics", "strict")
    options.add_session_config_entry("braid.cache", "0")
    options.add_session_config_entry("braid.jobs", "1")
    given = options.compile_options()
    assert (given.numerics, given.cache, given.jobs) == ("strict", False, 1)
    own.InferenceSession(path, options)
    options.add_session_config_entry("braid.cache", "perhaps")
    with pytest.raises(InvalidArgument, match=r"'braid\.cache' is 'perhaps', expected 1 or 0"):
        own.InferenceSession(path, options)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_options_are_copied(copied: Any) -> None:
    options = own.SessionOptions()
    options.logid = "mine"
    options.add_session_config_entry("session.disable_prepacking", "1")
    again = copied(options)
    assert again.logid == "mine"
    assert again.get_session_config_entry("session.disable_prepacking") == "1"


def test_providers(ort: ModuleType, path: Path) -> None:
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available provider"):
        session = ort.InferenceSession(
            path, providers=["CUDAExecutionProvider", "CPUExecutionProvider"]
        )
    assert session.get_providers() == ["CPUExecutionProvider"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ort.InferenceSession(path, providers=ort.get_available_providers()[-1:])


@pytest.mark.parametrize(
    ("providers", "options"),
    [
        ("CPUExecutionProvider", None),
        ([3], None),
        ([("CPUExecutionProvider", 3)], None),
        (["CPUExecutionProvider"], [{}, {}]),
        (["CPUExecutionProvider"], [3]),
        (["CPUExecutionProvider"], {}),
    ],
)
def test_wrong_providers(path: Path, providers: Any, options: Any) -> None:
    with pytest.raises(ValueError):
        own.InferenceSession(path, providers=providers, provider_options=options)


def test_an_unknown_provider(path: Path) -> None:
    with pytest.raises(ValueError, match="did you mean 'CUDAExecutionProvider'"):
        own.InferenceSession(path, providers=["CUDAExecutionProvidr"])


def test_functions_of_the_module(ort: ModuleType) -> None:
    assert "CPUExecutionProvider" in ort.get_available_providers()
    assert set(ort.get_available_providers()) <= set(ort.get_all_providers())
    assert ort.get_device() == "CPU"
    assert ort.get_version_string() == ort.__version__
    ort.set_seed(3)
    ort.disable_telemetry_events()
    with pytest.raises(RuntimeError, match="Invalid logging severity"):
        ort.set_default_logger_severity(7)


def test_the_severity_is_that_of_the_logger() -> None:
    logger = logging.getLogger("braid")
    before = logger.level
    try:
        own.set_default_logger_severity(3)
        assert logger.level == logging.ERROR
        own.set_default_logger_severity(0)
        assert logger.level == logging.DEBUG
    finally:
        logger.setLevel(before)
