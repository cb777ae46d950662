"""`braid.load` and the options of commands on artifacts: mismatches are reported."""

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.support.errors import BraidError
from braid.tools.cli import main


def scale() -> ModelProto:
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    x, y = info("x", TensorProto.FLOAT, [200]), info("y", TensorProto.FLOAT, [200])
    weight = numpy_helper.from_array(np.arange(200, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "scale", [x], [y], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("load") / "m.braid"
    braid.compile(scale(), jobs=1).save(path)
    return path


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a/" * 4000, ""])
def test_names_that_no_file_has(name: str) -> None:
    with pytest.raises(BraidError, match=r"no file has such a name|cannot open '"):
        braid.load(name)


@pytest.mark.parametrize("threads", [-1, 1.5, "2", True, None, 2**31])
def test_numbers_of_threads(artifact: Path, threads: object) -> None:
    with pytest.raises(BraidError, match="threads is "):
        braid.load(artifact, threads=threads)  # pyright: ignore
    with pytest.raises(BraidError, match="threads is "):
        braid.compile("none.onnx", threads=threads)  # pyright: ignore


@pytest.mark.parametrize("name", ["jobs", "inter_op_threads"])
def test_other_numbers(name: str) -> None:
    with pytest.raises(BraidError, match=f"{name} is -1, expected at least 1"):
        braid.compile("none.onnx", **{name: -1})


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("m.onnx", scale().SerializeToString(), "use braid.compile"),
        ("m.mlir", b"builtin.module {\n}\n\n\n", "use braid.compile"),
        ("m.so", b"\x7fELF" + bytes(100), "for programs in C"),
        ("m.braid", b"something quite different", "compile the model again"),
    ],
)
def test_what_is_no_artifact(tmp_path: Path, name: str, content: bytes, hint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BraidError, match="is not a braid artifact: it starts with") as raised:
        braid.load(tmp_path / name)
    assert hint in (raised.value.hint or "")


@pytest.mark.parametrize("source", [ModelProto(), b"BRAIDART", None, 3])
def test_what_is_no_path(source: object) -> None:
    with pytest.raises(BraidError, match=r"takes the path of a \.braid file, got "):
        braid.load(source)  # pyright: ignore


@pytest.mark.parametrize("command", ["run", "bench"])
def test_an_artifact_of_another_target(
    artifact: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--random"] if command == "run" else ["--runs", "1"]
    assert main([command, str(artifact), *options, "--target", "npu-small"]) == 1
    said = capsys.readouterr().err
    assert f"'{artifact}' is compiled for target 'host', not for 'npu-small'" in said
    assert "compile the model again with --target npu-small" in said
    assert main([command, str(artifact), *options, "--target", "host"]) == 0
    assert main([command, str(artifact), *options]) == 0
