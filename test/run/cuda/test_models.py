"""Whole models through the device plugin `cuda`, executed by the emulator behind the stand-in."""

import gc
from random import Random

import numpy as np
import onnx
import pytest

import braid
from braid.read_source import read_source
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.universe import make_context
from test.run.cuda.conftest import TARGET, Driver
from test.run.gpu.test_models import reference, slow
from test.run.models.conftest import conditional, convolutional, loop, transformer
from test.run.models.test_models import check, random_inputs
from test.unit.passes.partition.random_clusters import split_at_random

MODELS = {
    "convolutional": convolutional,
    "transformer": transformer,
    "conditional": conditional,
    "loop": loop,
}


def expect(model: braid.Model, proto: onnx.ModelProto, runs: int = 2) -> None:
    for seed in range(runs):
        inputs = random_inputs(proto, seed)
        check(model.run_named(inputs)["y"], reference(proto, inputs))


@pytest.mark.parametrize("order", ["late", "early", "7"])
@pytest.mark.parametrize("name", ["loop", "transformer", *slow("convolutional", "conditional")])
def test_whole_models(
    driver: Driver, name: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_ORDER", order)
    model = braid.compile(MODELS[name](), target=TARGET)
    expect(model, MODELS[name]())
    del model
    gc.collect()
    driver.check()


def test_a_function_is_one_graph(driver: Driver) -> None:
    """Which is made once, and launched for each run."""
    proto = transformer()
    model = braid.compile(proto, target=TARGET)
    expect(model, proto, runs=6)
    calls = driver.calls()
    assert calls.count("cuGraphLaunch") == 6
    # One for each slot of buffers.
    assert calls.count("cuGraphInstantiateWithFlags") == 2
    assert calls.count("cuLaunchKernel") >= 10


@pytest.mark.parametrize("order", ["late", "3"])
@pytest.mark.parametrize("name", ["loop", *slow("convolutional", "conditional", "transformer")])
def test_split_models(
    driver: Driver, name: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of a model on the CPU and on the GPU, at random."""
    monkeypatch.setenv("STANDIN_ORDER", order)
    proto = MODELS[name]()
    source = read_source(make_context(), proto)
    assert split_at_random(source.module, ["cpu:0", "gpu:0"], Random(7)) > 1
    model = braid.compile(source.module, parameters=source.parameters, target=TARGET)
    expect(model, proto)
    del model
    gc.collect()
    driver.check()


def test_an_artifact_holds_what_the_plugin_loads(driver: Driver, tmp_path: object) -> None:
    proto = loop()
    path = f"{tmp_path}/m.braid"
    braid.compile(proto, target=TARGET, load=False).save(path)
    assert {code.kind for code in read_artifact(path).manifest.devices} == {
        "ptx-sm_80",
        "gpu-plan",
        "gpu-launches",
    }
    expect(braid.load(path), proto)


def test_streams(driver: Driver) -> None:
    """Requests of a stream, whose copies overlap what runs before them."""
    proto = transformer()
    model = braid.compile(proto, target=TARGET)
    inputs = [random_inputs(proto, seed) for seed in range(6)]
    results = list(model.stream(inputs))
    for own, result in zip(inputs, results, strict=True):
        check(
            np.asarray(result[0] if isinstance(result, list | tuple) else result),
            reference(proto, own),
        )


def test_memory_that_is_missing(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_MEMORY", "16384")
    with pytest.raises(BraidError) as caught:
        braid.compile(transformer(), target=TARGET)
    text = str(caught.value)
    assert "device 'gpu:0'" in text and "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY" in text
    assert "of the GPU's 16384 bytes are free" in text
    gc.collect()
    driver.check()


def test_a_gpu_that_is_older_than_the_code(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_CAPABILITY", "7.5")
    with pytest.raises(BraidError, match=r"the GPU is sm_75, and there is code for ptx-sm_80"):
        braid.compile(loop(), target=TARGET)
