"""Models of the usual kinds, whole on an emulated GPU and split with the CPU, by ONNX Runtime."""

import importlib.util
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from benchmarks.models.hand_written import make_loop_if, make_transformer_block
from benchmarks.models.light import make_light
from braid.passes.partition.assign_devices import Strategy
from braid.read_source import read_source
from braid.universe import make_context
from test.run.models.test_models import check
from test.unit.passes.partition.random_clusters import split_at_random

Make = Callable[[], onnx.ModelProto]

TARGET = "gpu-emulated"


def small_squeezenet() -> onnx.ModelProto:
    """SqueezeNet on images of 64 by 64."""
    model = make_light("squeezenet")
    shape = model.graph.input[0].type.tensor_type.shape
    for dim, extent in zip(shape.dim, (1, 3, 64, 64), strict=True):
        dim.dim_value = extent
    del model.graph.value_info[:]
    return model


def small_mobilenet_v2() -> onnx.ModelProto:
    """MobileNetV2 of the paper's configuration, on images of 64 by 64."""
    from benchmarks.models.torch_models import export, noise, vision

    return export(lambda: vision("MobileNetV2"), lambda: noise((1, 3, 64, 64)))


def small_gpt2() -> onnx.ModelProto:
    """GPT-2 with two layers and 1000 tokens to choose from, otherwise of the paper's widths."""
    import torch

    from benchmarks.models.torch_models import export, gpt2

    tokens = torch.arange(0, 800, 50).reshape(1, 16)
    return export(lambda: gpt2(n_layer=2, vocab_size=1000), lambda: (tokens,))


MODELS: dict[str, Make] = {
    "squeezenet": small_squeezenet,
    "mobilenet_v2": small_mobilenet_v2,
    "transformer_block": lambda: make_transformer_block(32, 64, 4, 128),
    "gpt2": small_gpt2,
    "loop_if": make_loop_if,
}
NEED_TORCH = {"mobilenet_v2", "gpt2"}
QUICK = {"loop_if"}
"""These run in the normal suite; emulating the others takes minutes."""


CASES: Sequence[object] = [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in MODELS
]


def made(name: str) -> onnx.ModelProto:
    """The model; skips the test where the packages that export it are missing."""
    if name in NEED_TORCH and not importlib.util.find_spec("transformers"):
        pytest.skip("'transformers' is not installed")
    return MODELS[name]()


def check_beside_onnx_runtime(model: onnx.ModelProto, compiled: braid.Model) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    rng = np.random.default_rng(0)
    inputs = {
        info.name: rng.integers(0, 800, info.shape)
        if info.type == "tensor(int64)"
        else rng.standard_normal(info.shape).astype(np.float32)
        for info in session.get_inputs()
    }
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


PINS = {
    "squeezenet": ("op:pool=cpu:0", "op:conv=gpu:0"),
    "mobilenet_v2": ("op:add=cpu:0", "op:conv=gpu:0"),
    "transformer_block": ("op:softmax=cpu:0", "op:matmul=gpu:0"),
    "gpt2": ("op:softmax=cpu:0", "op:matmul=gpu:0"),
    "loop_if": ("op:matmul=cpu:0", "op:reduce=gpu:0"),
}
"""Kinds of ops that are kept on a device, so that `assign-devices` has to split the model."""


@pytest.mark.parametrize("strategy", ["priority", "throughput"])
@pytest.mark.parametrize("name", CASES)
def test_models_split_by_the_passes(name: str, strategy: Strategy) -> None:
    model = made(name)
    compiled = braid.compile(model, target=TARGET, partition=strategy, pin=PINS[name])
    assert set(compiled.devices) == {"cpu:0", "gpu:0"}
    check_beside_onnx_runtime(model, compiled)
