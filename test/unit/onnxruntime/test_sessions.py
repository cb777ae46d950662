"""Sessions say, do and refuse what those of ONNX Runtime do."""

import copy
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import braid
import braid.onnxruntime as own
from braid.support.errors import BraidError
from test.unit.onnxruntime.conftest import WEIGHTS, expected

Feed = dict[str, Any]


def errors_of(ort: ModuleType) -> Any:
    return sys.modules[f"{ort.__name__}.capi.onnxruntime_pybind11_state"]


@pytest.fixture
def session(ort: ModuleType, path: Path) -> Any:
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("form", ["str", "path", "bytes", "other suffix"])
def test_forms_of_models(
    ort: ModuleType, path: Path, feed: Feed, x: np.ndarray, form: str, tmp_path: Path
) -> None:
    given: Any = {"str": str(path), "path": path, "bytes": path.read_bytes()}.get(form)
    if given is None:
        given = tmp_path / "inf.model"
        given.write_bytes(path.read_bytes())
    y, total, turned = ort.InferenceSession(given).run(None, feed)
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total, expected(x).sum(), rtol=1e-5)
    np.testing.assert_array_equal(turned, y.T)


def test_what_is_said_of_inputs_and_outputs(session: Any) -> None:
    def said(args: Any) -> list[tuple[str, list[object], str]]:
        return [(arg.name, arg.shape, arg.type) for arg in args]

    assert said(session.get_inputs()) == [
        ("x", ["batch", 3], "tensor(float)"),
        ("factor", [], "tensor(float)"),
    ]
    y, total, (name, shape, kind) = said(session.get_outputs())
    assert y == ("y", ["rows", 4], "tensor(float)")
    assert total == ("total", [], "tensor(float)")
    # Of a shape that the model does not declare, ONNX Runtime and braid may infer other names.
    assert (name, shape[0], type(shape[1]), kind) == ("turned", 4, str, "tensor(float)")
    assert session.get_overridable_initializers() == []
    text = "NodeArg(name='x', type='tensor(float)', shape=['batch', 3])"
    assert str(session.get_inputs()[0]) == text


def test_metadata(session: Any) -> None:
    meta = session.get_modelmeta()
    assert meta.custom_metadata_map == {"character": "a\nb", "": "empty"}
    assert (meta.producer_name, meta.domain, meta.version) == ("a test", "org.example", 7)
    assert (meta.graph_name, meta.graph_description) == ("scaled", "a graph")
    assert meta.description == "a model"


def test_a_model_without_a_version(ort: ModuleType, proto: onnx.ModelProto) -> None:
    proto.ClearField("model_version")
    session = ort.InferenceSession(proto.SerializeToString())
    assert session.get_modelmeta().version == 2**63 - 1


def test_providers(session: Any) -> None:
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}


@pytest.mark.parametrize(
    ("names", "numbers"),
    [(None, [0, 1, 2]), ([], [0, 1, 2]), (["total"], [1]), (["total", "y", "total"], [1, 0, 1])],
)
def test_chosen_outputs(session: Any, feed: Feed, names: Any, numbers: list[int]) -> None:
    everything = session.run(None, feed)
    chosen = session.run(names, feed)
    assert len(chosen) == len(numbers)
    for found, number in zip(chosen, numbers, strict=True):
        np.testing.assert_array_equal(found, everything[number])


@pytest.mark.parametrize("form", ["list", "order", "OrtValue"])
def test_forms_of_inputs(
    ort: ModuleType, session: Any, feed: Feed, x: np.ndarray, form: str
) -> None:
    given = {
        "list": x.tolist(),
        "order": np.asfortranarray(x),
        "OrtValue": ort.OrtValue.ortvalue_from_numpy(x),
    }[form]
    (y,) = session.run(["y"], {**feed, "x": given})
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)


WRONG: dict[str, tuple[Callable[[Any, Feed], object], str, str]] = {
    "missing": (
        lambda s, f: s.run(None, {"x": f["x"]}),
        "ValueError",
        "Required inputs (['factor']) are missing from input feed (['x']).",
    ),
    "unknown input": (
        lambda s, f: s.run(None, {**f, "z": f["x"]}),
        "InvalidArgument",
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid input name: z",
    ),
    "unknown output": (
        lambda s, f: s.run(["z"], f),
        "InvalidArgument",
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid output name:z",
    ),
    "type": (
        lambda s, f: s.run(None, {**f, "x": f["x"].astype(np.float64)}),
        "InvalidArgument",
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unexpected input data type. "
        "Actual: (tensor(double)) , expected: (tensor(float))",
    ),
    "rank": (
        lambda s, f: s.run(None, {**f, "x": f["x"][0]}),
        "InvalidArgument",
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid rank for input: x Got: 1 Expected: 2 "
        "Please fix either the inputs/outputs or the model.",
    ),
    "size": (
        lambda s, f: s.run(None, {**f, "x": f["x"][:, :2]}),
        "InvalidArgument",
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the "
        "following indices\n index: 1 Got: 2 Expected: 3\n Please fix either the inputs/outputs "
        "or the model.",
    ),
    "text for names": (lambda s, f: s.run("y", f), "TypeError", ""),
    "None": (lambda s, f: s.run(None, {**f, "x": None}), "Fail", ""),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_what_runs_refuse(ort: ModuleType, session: Any, feed: Feed, mistake: str) -> None:
    call, kind, text = WRONG[mistake]
    wanted = getattr(errors_of(ort), kind, None) or {"ValueError": ValueError}.get(kind, TypeError)
    with pytest.raises(wanted) as raised:
        call(session, feed)
    assert str(raised.value).removeprefix("error: ").startswith(text)
    if ort is own:
        assert isinstance(raised.value, BraidError)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("none.onnx", "NoSuchFile"),
        (b"no model", "InvalidProtobuf"),
        (b"", "InvalidArgument"),
        (3, "TypeError"),
    ],
)
def test_what_is_no_model(ort: ModuleType, given: object, kind: str) -> None:
    with pytest.raises(getattr(errors_of(ort), kind, TypeError)):
        ort.InferenceSession(given)


def graph_of(node: onnx.NodeProto, *, opset: int = 17) -> bytes:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [value("x", TensorProto.FLOAT, [2])], [value("y", TensorProto.FLOAT, [2])]
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("org.example", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_an_op_that_braid_has_not_is_named() -> None:
    errors = errors_of(own)
    text = r"^\[ONNXRuntimeError\] : 9 : NOT_IMPLEMENTED : .*org\.example\.Twist"
    with pytest.raises(errors.NotImplemented, match=text):
        own.InferenceSession(
            graph_of(helper.make_node("Twist", ["x"], ["y"], domain="org.example"))
        )


def test_an_invalid_model(ort: ModuleType) -> None:
    with pytest.raises((errors_of(ort).InvalidGraph, errors_of(ort).InvalidArgument)):
        ort.InferenceSession(graph_of(helper.make_node("Relu", ["nothing"], ["y"])))


def test_run_async(session: Any, feed: Feed, x: np.ndarray) -> None:
    done, found = threading.Event(), list[Any]()

    def callback(results: Any, user_data: object, error: str) -> None:
        found.extend((results, user_data, error))
        done.set()

    session.run_async(["y"], feed, callback, "mine")
    assert done.wait(60)
    np.testing.assert_allclose(found[0][0], expected(x), rtol=1e-5, atol=1e-6)
    assert found[1:] == ["mine", ""]


def test_run_with_ort_values(ort: ModuleType, session: Any, feed: Feed, x: np.ndarray) -> None:
    values = {name: ort.OrtValue.ortvalue_from_numpy(each) for name, each in feed.items()}
    (y,) = session.run_with_ort_values(["y"], values)
    assert (y.data_type(), y.shape()) == ("tensor(float)", [5, 4])
    np.testing.assert_allclose(y.numpy(), expected(x), rtol=1e-5, atol=1e-6)


def test_terminate(ort: ModuleType, session: Any, feed: Feed) -> None:
    options = ort.RunOptions()
    session.run(None, feed, options)
    options.terminate = True
    with pytest.raises(errors_of(ort).Fail, match="Exiting due to terminate flag being set"):
        session.run(None, feed, options)


def looping() -> bytes:
    """Return a model that counts up to n."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum_in", "one"], ["sum_out"]),
            helper.make_node("Identity", ["go_in"], ["go_out"]),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("go_in", TensorProto.BOOL, []),
            value("sum_in", TensorProto.INT64, []),
        ],
        [value("go_out", TensorProto.BOOL, []), value("sum_out", TensorProto.INT64, [])],
        [numpy_helper.from_array(np.array(1), "one")],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "start"], ["sum"], body=body)],
        "loop",
        [value("n", TensorProto.INT64, []), value("start", TensorProto.INT64, [])],
        [value("sum", TensorProto.INT64, [])],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


def test_another_thread_terminates_a_loop() -> None:
    session, options = own.InferenceSession(looping()), own.RunOptions()
    feed = {"n": np.array(5), "start": np.array(2)}
    assert session.run(None, feed, options) == [7]
    threading.Timer(0.3, setattr, (options, "terminate", True)).start()
    with pytest.raises(errors_of(own).Fail, match="the run was ended from outside"):
        session.run(None, {**feed, "n": np.array(2**62)}, options)
    assert session.run(None, feed) == [7]


def test_profiling(ort: ModuleType, path: Path, feed: Feed, tmp_path: Path) -> None:
    import json

    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(path, options)
    session.run(None, feed)
    session.run(None, feed)
    file = session.end_profiling()
    assert file.startswith(str(tmp_path / "profile_")) and file.endswith(".json")
    events = json.loads(Path(file).read_text())
    nodes = [event for event in events if event["cat"] == "Node"]
    assert nodes and all(event["ph"] == "X" and event["dur"] >= 0 for event in nodes)
    if ort is own:
        assert {event["args"]["executions"] for event in nodes} == {2}
    assert session.end_profiling() == ""
    begun = session.get_profiling_start_time_ns()
    assert abs(begun - time.time_ns()) < 600e9
    silent = ort.InferenceSession(path)
    assert (silent.end_profiling(), silent.get_profiling_start_time_ns()) == ("", 0)


@pytest.mark.parametrize("make", [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy])
def test_sessions_are_pickled_and_copied(
    path: Path, feed: Feed, x: np.ndarray, make: Callable[[Any], Any]
) -> None:
    session = own.InferenceSession(path)
    again = make(session)
    session.close()
    np.testing.assert_allclose(again.run(["y"], feed)[0], expected(x), rtol=1e-5, atol=1e-6)
    assert again.get_inputs() == session.get_inputs()
    assert again.get_modelmeta() == session.get_modelmeta()
    with pytest.raises(errors_of(own).Fail, match="the model is closed"):
        session.run(None, feed)


def test_with(path: Path, feed: Feed) -> None:
    with braid.InferenceSession(path) as session:
        session.run(None, feed)
    with pytest.raises(BraidError, match="the model is closed"):
        session.run(None, feed)


def test_artifacts(path: Path, feed: Feed, x: np.ndarray, tmp_path: Path) -> None:
    artifact = tmp_path / "scaled.braid"
    own.InferenceSession(path).model.save(artifact)
    for source in (artifact, artifact.read_bytes()):
        session = own.InferenceSession(source)
        np.testing.assert_allclose(session.run(["y"], feed)[0], expected(x), rtol=1e-5, atol=1e-6)
        assert session.get_inputs() == [
            own.NodeArg("x", ["batch", 3], "tensor(float)"),
            own.NodeArg("factor", [], "tensor(float)"),
        ]
    with pytest.raises(BraidError, match="not a usable braid artifact"):
        own.InferenceSession(artifact.read_bytes()[:5000])
    with pytest.raises(BraidError, match="No such file"):
        own.InferenceSession(tmp_path / "none.braid")


def test_what_was_compiled_is_kept(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("BRAID_CACHE_LIMIT", "1GiB")
    with caplog.at_level(logging.DEBUG, "braid"):
        for _ in range(2):
            own.InferenceSession(path.read_bytes())
    assert [record.getMessage().split()[0] for record in caplog.records] == ["compiled", "loaded"]


def test_weights_as_inputs(ort: ModuleType, feed: Feed, proto: onnx.ModelProto) -> None:
    """A weight that is an input too is no input of a session, and braid takes no other for it."""
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 4]))
    session = ort.InferenceSession(model.SerializeToString())
    assert [arg.name for arg in session.get_inputs()] == ["x", "factor"]
    (arg,) = session.get_overridable_initializers()
    assert (arg.name, arg.shape, arg.type) == ("w", [3, 4], "tensor(float)")
    session.run(None, feed)
    if ort is own:
        with pytest.raises(errors_of(ort).NotImplemented, match="'w' is a weight of the model"):
            session.run(None, {**feed, "w": WEIGHTS})


PROGRAM = """
import sys
import braid.onnxruntime as ort
names = {name.partition(".")[0] for name in sys.modules}
assert "onnxruntime" not in names
session = ort.InferenceSession(sys.argv[1])
assert not {"llvmlite", "xdsl", "onnxruntime"} & {n.partition(".")[0] for n in sys.modules}
"""


def test_a_kept_model_needs_no_compiler(path: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "BRAID_CACHE_DIR": str(tmp_path),
        "BRAID_CACHE_LIMIT": "1GiB",
    }
    compiling = f"import braid; braid.InferenceSession({str(path)!r})"
    subprocess.run([sys.executable, "-c", compiling], check=True, env=environment)
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=True, env=environment)


def test_the_version_is_that_of_the_real_one_here() -> None:
    def numbers(version: str) -> list[int]:
        return [int(part) for part in version.split(".")[:2]]

    assert numbers(own.__version__) <= numbers(onnxruntime.__version__)
