"""Models of the usual kinds, whole on an emulated GPU and split with the CPU, by ONNX Runtime."""

from collections.abc import Sequence
from random import Random

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from benchmarks.models.small import PINS, small_inputs, small_makers
from braid.driver.read_source import read_source
from braid.passes.partition.assign_devices import Strategy
from braid.universe import make_context
from test.run.models.test_models import check
from test.unit.passes.partition.random_clusters import split_at_random

TARGET = "gpu-emulated"
QUICK = {"loop_if"}
"""These run in the normal suite; emulating the others takes minutes."""
CASES: Sequence[object] = [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in PINS
]


def made(name: str) -> onnx.ModelProto:
    """Return the model; skip the test if the packages that export it are missing."""
    makers = small_makers()
    if name not in makers:
        pytest.skip("'transformers' is not installed")
    return makers[name]()


def check_beside_onnx_runtime(model: onnx.ModelProto, compiled: braid.Model) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    inputs = small_inputs(session)
    results = compiled.run_named(inputs)
    for info, expected in zip(session.get_outputs(), session.run(None, inputs), strict=True):
        check(np.asarray(results[info.name]), np.asarray(expected))


@pytest.mark.parametrize("name", CASES)
def test_whole_models(name: str) -> None:
    model = made(name)
    check_beside_onnx_runtime(model, braid.compile(model, target=TARGET))


@pytest.mark.parametrize("name", CASES)
def test_split_models(name: str) -> None:
    """Ops run on the CPU and on the emulated GPU at random."""
    model = made(name)
    source = read_source(make_context(), model)
    assert split_at_random(source.module, ["cpu:0", "gpu:0"], Random(3)) > 1
    compiled = braid.compile(source.module, parameters=source.parameters, target=TARGET)
    check_beside_onnx_runtime(model, compiled)


@pytest.mark.parametrize("strategy", ["priority", "throughput"])
@pytest.mark.parametrize("name", CASES)
def test_models_split_by_the_passes(name: str, strategy: Strategy) -> None:
    model = made(name)
    compiled = braid.compile(model, target=TARGET, partition=strategy, pin=PINS[name])
    assert set(compiled.devices) == {"cpu:0", "gpu:0"}
    check_beside_onnx_runtime(model, compiled)
