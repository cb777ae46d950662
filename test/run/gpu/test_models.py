"""Whole models on an emulated GPU, and split between it and the CPU."""

import re
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from braid.driver.read_source import read_source
from braid.lowering.gpu.fallback import emit_fallback
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.universe import make_context
from test.run.models.conftest import conditional, convolutional, loop, transformer
from test.run.models.test_models import check, random_inputs
from test.unit.passes.partition.random_clusters import split_at_random
from test.unit.runtime.test_run_model import run_model as run_model

TARGET = "gpu-emulated"
MODELS = {
    "convolutional": convolutional,
    "transformer": transformer,
    "conditional": conditional,
    "loop": loop,
}


def slow(*names: str) -> list[object]:
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


def reference(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.asarray(session.run(["y"], inputs)[0])


@pytest.mark.parametrize(
    "name",
    ["transformer", "loop", *slow("convolutional", "conditional")],
)
def test_whole_models(name: str) -> None:
    model = MODELS[name]()
    compiled = braid.compile(model, target=TARGET)
    for seed in range(2):
        inputs = random_inputs(model, seed)
        check(compiled.run_named(inputs)["y"], reference(model, inputs))


def test_an_artifact(tmp_path: Path) -> None:
    model = transformer()
    path = tmp_path / "model.braid"
    braid.compile(model, target=TARGET, load=False).save(path)
    inputs = random_inputs(model, 0)
    check(braid.load(path).run_named(inputs)["y"], reference(model, inputs))


def compile_split(proto: onnx.ModelProto, seed: int) -> braid.Model:
    """Return the model, whose ops run on the CPU and on the emulated GPU at random."""
    source = read_source(make_context(), proto)
    assert split_at_random(source.module, ["cpu:0", "gpu:0"], Random(seed)) > 1
    return braid.compile(source.module, parameters=source.parameters, target=TARGET)


@pytest.mark.parametrize(
    "name",
    ["loop", *slow("convolutional", "conditional", "transformer")],
)
def test_split_models(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    compiled = compile_split(model, 7)
    compiled.save(tmp_path / "split.braid")
    specs = read_artifact(tmp_path / "split.braid").manifest.runs_on
    assert "gpu-emulated" in {device.plugin for device in specs}
    inputs = random_inputs(model, 0)
    expected = reference(model, inputs)
    for each in (compiled, braid.load(tmp_path / "split.braid")):
        check(each.run_named(inputs)["y"], expected)


def test_runs_from_c(run_model: Path, tmp_path: Path) -> None:
    model = conditional()
    compile_split(model, 5).save(tmp_path / "split.braid")
    braid.compile(model, target=TARGET, load=False).save(tmp_path / "gpu.braid")
    braid.compile(model, load=False).save(tmp_path / "cpu.braid")
    split, gpu, cpu = (
        subprocess.run([run_model, path], capture_output=True, text=True, check=True).stdout
        for path in (tmp_path / f"{name}.braid" for name in ("split", "gpu", "cpu"))
    )
    numbers = [
        [float(n) for n in re.findall(r"\d+\.\d+(?:e[-+]\d+)?", text)] for text in (split, gpu, cpu)
    ]
    assert numbers[0] and numbers[0] == pytest.approx(numbers[2], rel=1e-4)
    assert numbers[1] == pytest.approx(numbers[2], rel=1e-4)


def test_a_failure_on_the_device_is_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_fallback, "buffer_bytes", lambda buffer, outside: 4)
    model = conditional()
    compiled = compile_split(model, 7)
    with pytest.raises(BraidError, match=r"on 'gpu:0': kernel_.*, block 0, thread"):
        compiled.run_named(random_inputs(model, 0))
