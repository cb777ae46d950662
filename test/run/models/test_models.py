"""Whole models: compiled code against the interpreter, through every way of running it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import braid
from braid.tools.comparison.layerwise import relative_error
from test.c_programs import build, with_runtime

NATIVE = Path(__file__).parents[3] / "runtime" / "native"
TOLERANCE = 1e-4


MODELS = ("convolutional", "transformer", "conditional", "loop")
Make = Callable[[str], onnx.ModelProto]


def random_inputs(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    values: dict[str, np.ndarray] = {}
    for info in model.graph.input:
        tensor = info.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        value = rng.integers(0, 8, shape) if dtype == np.int64 else rng.standard_normal(shape)
        values[info.name] = np.asarray(value, dtype)
    return values


def check(actual: np.ndarray, reference: np.ndarray) -> None:
    assert reference.std() > 1e-3 * np.abs(reference).max(), "agreement would mean nothing"
    assert relative_error(actual, reference) <= TOLERANCE


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_compiled(make: Make, name: str, threads: int) -> None:
    model = make(name)
    compiled, interpreted = braid.compile(model, threads=threads), braid.interpret(model)
    for seed in range(4):
        inputs = random_inputs(model, seed)
        check(compiled.run_named(inputs)["y"], interpreted.run_named(inputs)["y"])


@pytest.mark.parametrize("name", MODELS)
def test_interpreted(make: Make, name: str) -> None:
    model = make(name)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    interpreted = braid.interpret(model)
    for seed in range(4):
        inputs = random_inputs(model, seed)
        check(interpreted.run_named(inputs)["y"], np.asarray(session.run(["y"], inputs)[0]))


def test_both_branches_are_taken(make: Make) -> None:
    model = make("conditional")
    compiled = braid.compile(model)
    signs = {bool((compiled(**random_inputs(model, s)) < 0).any()) for s in range(8)}
    assert signs == {True, False}


@pytest.mark.parametrize("trips", [0, 1, 2, 7])
def test_trip_counts(make: Make, trips: int) -> None:
    model = make("loop")
    inputs = random_inputs(model, 0) | {"n": np.asarray(trips)}
    check(braid.compile(model)(**inputs), braid.interpret(model).run_named(inputs)["y"])


@pytest.mark.parametrize("name", MODELS)
def test_artifact(make: Make, name: str, tmp_path: Path) -> None:
    model = make(name)
    compiled = braid.compile(model)
    compiled.save(tmp_path / "m.braid")
    inputs = random_inputs(model, 0)
    loaded = braid.load(tmp_path / "m.braid").run_named(inputs)["y"]
    np.testing.assert_array_equal(loaded, compiled.run_named(inputs)["y"])


def test_from_c(make: Make, tmp_path: Path) -> None:
    """The C example, whose inputs are a fixed ramp, prints the norm that Python computes."""
    model = braid.compile(make("convolutional"))
    model.save(tmp_path / "m.braid")
    example = NATIVE / "examples" / "run_model.c"
    program = build(tmp_path / "run_model", example, *with_runtime())
    printed = subprocess.run([program, tmp_path / "m.braid"], capture_output=True, text=True)
    ramp = (np.arange(2 * 3 * 20 * 20) % 17 / 16.0).astype(np.float32).reshape(2, 3, 20, 20)
    norm = float(np.linalg.norm(np.asarray(model(ramp), np.float64)))
    name, value = printed.stdout.split(": ")
    assert (name, float(value)) == ("y", pytest.approx(norm, rel=1e-5))
