"""The C example runs an artifact without Python."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import braid
from braid.runtime.native import NativeModel
from test.c_programs import PLUGIN, build, with_runtime
from test.unit.runtime.test_open_models import SOURCE as OPEN_MODEL
from test.unit.runtime.test_open_models import write_open_model

EXAMPLE = Path(__file__).parents[3] / "runtime" / "native" / "examples" / "run_model.c"


@pytest.fixture(scope="module")
def run_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("example") / "run_model", EXAMPLE, *with_runtime())


@pytest.mark.parametrize("threads", ["1", "2"])
def test_norms(run_model: Path, artifact_path: Path, threads: str) -> None:
    x = (np.arange(1000 * 8) % 17 / 16.0).reshape(1000, 8)
    y = 3.0 * x + np.arange(8)
    command = [run_model, artifact_path, threads]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    names, norms = zip(*(line.split(": ") for line in result.stdout.splitlines()), strict=True)
    assert names == ("y", "total")
    np.testing.assert_allclose([float(n) for n in norms], [np.linalg.norm(y), y.sum()], rtol=1e-5)


def test_a_missing_file(run_model: Path) -> None:
    result = subprocess.run([run_model, "none.braid"], capture_output=True, text=True)
    assert result.returncode == 1
    assert "cannot open 'none.braid'" in result.stderr


def test_null_pointers_are_refused(run_model: Path, artifact_path: Path) -> None:
    source = Path(__file__).with_name("null_pointers.c")
    program = build(run_model.with_name("null"), source, *with_runtime())
    result = subprocess.run([program, artifact_path], capture_output=True, text=True, check=False)
    said = result.stdout.splitlines()
    assert said.count("the context is NULL") == 6
    assert {
        "the artifact's path is NULL",
        "the artifact is NULL",
        "the artifact's name is NULL",
        "the model's code is NULL",
        "the model's code does not export 'braid_model'",
        "the model is NULL",
        "input 'x': its shape is NULL",
        "the buffer for input 'x' is NULL",
        "the buffer for output 'y' is NULL",
        "the stream is NULL",
        "the deadline is negative",
        "the list of inputs is NULL",
        "the list of outputs is NULL",
        "the stream has ended",
    } <= set(said)
    assert result.returncode == 0, said


def open_model() -> ModelProto:
    """Double the rows of x, of which there may be any number."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 8])
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_open_dims(run_model: Path, tmp_path: Path, rows: int) -> None:
    braid.compile(open_model(), shape_buckets={"rows": [1, 4]}, jobs=1).save(tmp_path / "m.braid")
    command = [run_model, tmp_path / "m.braid", "1", f"rows={rows}"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    y = 2 * (np.arange(rows * 8) % 17 / 16.0)
    assert result.stdout.startswith("y: ")
    np.testing.assert_allclose(float(result.stdout[3:]), np.linalg.norm(y), rtol=1e-5)


def test_open_sizes(run_model: Path, tmp_path: Path) -> None:
    code = build(tmp_path / "open.so", OPEN_MODEL, flags=PLUGIN).read_bytes()
    write_open_model(tmp_path / "open.braid", NativeModel.from_memory(code), code)
    for batch, n in [(1, 1), (20, 3), (2, 600)]:
        sizes = [f"batch={batch}", f"n={n}", f"2 * n={2 * n}"]
        command = [run_model, tmp_path / "open.braid", "1", *sizes]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        y = 2 * (np.arange(batch * n) % 17 / 16.0)
        sums = y.reshape(batch, n).sum(0) + np.arange(n) % 17 / 16.0
        found = dict(line.split(": ") for line in result.stdout.splitlines())
        np.testing.assert_allclose(float(found["y"]), np.linalg.norm(y), rtol=1e-5)
        np.testing.assert_allclose(float(found["sums"]), np.linalg.norm(sums), rtol=1e-5)
    command = [run_model, tmp_path / "open.braid", "1", "batch=2", "n=3", "2 * n=7"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert "input 's': dim 0 is not 2 * n (batch=2,n=3,2 * n=7)" in result.stderr
