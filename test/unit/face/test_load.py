"""`braid.load` and the options of commands on artifacts: what does not fit is said."""

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.support.errors import BraidError
from braid.tools.cli import main


def scale(weights: dict[str, np.ndarray]) -> ModelProto:
    """x times all weights, one after the other; empty ones are added to an output of their own."""
    info, nodes, last = helper.make_tensor_value_info, [], "x"
    outputs = []
    for name, value in weights.items():
        if value.size:
            nodes.append(helper.make_node("Mul", [last, name], [f"{name}_x"]))
            last = f"{name}_x"
        else:
            nodes.append(helper.make_node("Relu", [name], [f"{name}_y"]))
            outputs.append(info(f"{name}_y", TensorProto.FLOAT, value.shape))
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    outputs.append(info("y", TensorProto.FLOAT, [8]))
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    x = info("x", TensorProto.FLOAT, [8])
    graph = helper.make_graph(nodes, "scale", [x], outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("load") / "m.braid"
    braid.compile(scale({"w": np.arange(8, dtype=np.float32)}), jobs=1).save(path)
    return path


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
        ("m.onnx", scale({"w": np.ones(8, np.float32)}).SerializeToString(), "use braid.compile"),
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


def test_weights_behind_empty_ones_stay_where_they_are(tmp_path: Path) -> None:
    """The plan gives an empty weight a place of its own, and so must the file."""
    one, two = np.arange(8, dtype=np.float32), np.full(8, 3, np.float32)
    weights = {"a": np.zeros((0, 8), np.float32), "one": one, "two": two}
    compiled = braid.compile(scale(weights), jobs=1)
    compiled.save(tmp_path / "m.braid")
    loaded = braid.load(tmp_path / "m.braid")
    x = np.ones(8, np.float32)
    np.testing.assert_array_equal(loaded(x)[-1], one * two)
    loaded.save(tmp_path / "again.braid")
    assert (tmp_path / "again.braid").read_bytes() == (tmp_path / "m.braid").read_bytes()
