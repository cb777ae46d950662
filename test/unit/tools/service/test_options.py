"""Options of a task through the client, and what a task that fails raises."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import braid
from braid.tools.cli import main
from test.unit.tools.service.server import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture
def open_model(tmp_path: Path) -> Path:
    """Return y = x · k, of any batch and width; k may be a constant."""
    nodes = [helper.make_node("Mul", ["x", "k"], ["y"], "scaled")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "width"])
    k = helper.make_tensor_value_info("k", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "width"])
    path = tmp_path / "scale.onnx"
    graph = helper.make_graph(nodes, "g", [x, k], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)
    return path


def test_sizes_and_constants(server: Server, open_model: Path, tmp_path: Path) -> None:
    client = server.client
    task = client.submit(
        open_model,
        on_miss="default",
        dims={"batch": 2},
        shapes={"x": (2, 3)},
        constants={"k": np.asarray([4], np.float32)},
        at={},
        numerics="strict",
    )
    found = client.wait(task)
    assert found["options"]["dims"] == ["batch=2"] and found["diagnostics"] == []
    path = tmp_path / "scale.braid"
    path.write_bytes(client.artifact(task))
    (spec,) = braid.load(path).inputs
    assert (spec.name, spec.shape) == ("x", (2, 3))
    x = np.ones((2, 3), np.float32)
    assert np.array_equal(client.run(task, {"x": x})["y"], 4 * x)


def test_spaces_and_several_thresholds(server: Server, open_model: Path, tmp_path: Path) -> None:
    space = tmp_path / "space.toml"
    space.write_text("[elementwise]\nunroll = [1, 2]\n")
    client = server.client
    options = {"dims": {"batch": 2, "width": 64}, "seconds": 20, "again": True}
    task = client.submit(open_model, space=space, threshold=[0.5, 0.9], **options)
    found = client.wait(task)["options"]
    assert found["threshold"] == [0.5, 0.9]
    assert found["space"] == space.read_text() and found["space_format"] == "toml"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dims": {"batch": "x=y"}}, None),
        ({"shapes": {"x": "a,b"}}, "shapes for 'x' is 'a,b', expected sizes"),
        ({"constants": {"k": "here.npy"}}, "'k=\"here.npy\"' has other values"),
        ({"constants": {"k": float("nan")}}, "'k=NaN' has other values"),
        ({"threshold": [0.5, float("nan")]}, "threshold"),
        ({"frobnicate": 1}, "frobnicate"),
    ],
)
def test_wrong_options_are_refused(
    server: Server, open_model: Path, options: dict[str, object], message: str | None
) -> None:
    with pytest.raises(braid.BraidError, match=message):
        server.client.wait(server.client.submit(open_model, on_miss="default", **options))


@pytest.mark.parametrize("text", ["[" * 150, '{"a":1}', "%00", "-", ",", "9" * 190])
@pytest.mark.parametrize("option", ["shapes", "dims", "constants", "shape_buckets", "at"])
def test_texts_that_no_schema_allows_are_refused(server: Server, option: str, text: str) -> None:
    value = text if "%" in text else quote(text)
    status, answer = server.ask("POST", f"/tasks?name=m.onnx&{option}=k={value}", b"x")
    assert status == 422 and option in json.dumps(answer), answer


def test_a_constant_names_no_file_of_the_server(server: Server, open_model: Path) -> None:
    file = server.cache / "k.npy"
    np.save(file, np.ones(1, np.float32))
    status, answer = server.ask("POST", f"/tasks?name=m.onnx&constants=k={file}", b"x")
    assert status == 422 and "constants for 'k'" in json.dumps(answer), answer


def test_a_failed_task_raises_its_diagnostic(server: Server, tmp_path: Path) -> None:
    node = helper.make_node("Frobnicate", ["x"], ["y"], "odd")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    path = tmp_path / "my net.onnx"
    onnx.save(helper.make_model(helper.make_graph([node], "g", [x], [y]), ir_version=9), path)
    client = server.client
    task = client.submit(path)
    with pytest.raises(braid.BraidError, match="Frobnicate") as failed:
        client.wait(task)
    assert "my net.onnx" in str(failed.value)
    told = client.task(task)
    assert "model.onnx" not in json.dumps(told) and str(server.cache) not in json.dumps(told)
    (diagnostic,) = told["diagnostics"]
    assert diagnostic["severity"] == "error" and diagnostic["message"] == failed.value.message


def test_a_cancelled_task_raises(server: Server, open_model: Path) -> None:
    client = server.client
    task = client.submit(open_model, interactive=True, again=True, dims={"batch": 2, "width": 9})
    for event in client.events(task):
        if event.kind == "asks" and event.data["asks"]:
            client.cancel(task)
    with pytest.raises(braid.BraidError, match="was cancelled"):
        client.wait(task)


def test_messages_of_the_command_name_flags(
    server: Server, open_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--server", server.url, "--token", server.token]
    assert main(["tune", str(open_model), *where, "--shape", "z=2,3", "--time", "1"]) == 1
    assert "no input 'z'" in capsys.readouterr().err
    assert main(["tune", str(open_model), *where, "--dim", "depth=3", "--time", "1"]) == 1
    said = capsys.readouterr().err
    assert "dims=" not in said and "Traceback" not in said and "scale.onnx" in said, said
