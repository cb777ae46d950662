"""Models of the usual kinds that are small enough to be emulated."""

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from benchmarks.models.hand_written import make_loop_if, make_transformer_block
from benchmarks.models.light import make_light

PINS = {
    "squeezenet": ("op:pool=cpu:0", "op:conv=gpu:0"),
    "mobilenet_v2": ("op:add=cpu:0", "op:conv=gpu:0"),
    "transformer_block": ("op:softmax=cpu:0", "op:matmul=gpu:0"),
    "gpt2": ("op:softmax=cpu:0", "op:matmul=gpu:0"),
    "loop_if": ("op:matmul=cpu:0", "op:reduce=gpu:0"),
}
"""The ops of each that the host keeps where it is split between a CPU and a GPU."""


NEED_TORCH = {"mobilenet_v2", "gpt2"}


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


def small_gpt2(**sizes: int) -> onnx.ModelProto:
    """GPT-2 with two layers and 1000 tokens to choose from, by default of the paper's widths."""
    import torch

    from benchmarks.models.torch_models import export, gpt2

    tokens = torch.arange(0, 800, 50).reshape(1, 16)
    return export(lambda: gpt2(n_layer=2, vocab_size=1000, **sizes), lambda: (tokens,))


def small_makers(**sizes: int) -> dict[str, Callable[[], onnx.ModelProto]]:
    """Those that the installed packages can make; GPT-2 of other `sizes` of its configuration."""
    made: dict[str, Callable[[], onnx.ModelProto]] = {
        "squeezenet": small_squeezenet,
        "transformer_block": lambda: make_transformer_block(32, 64, 4, 128),
        "loop_if": make_loop_if,
        "mobilenet_v2": small_mobilenet_v2,
        "gpt2": partial(small_gpt2, **sizes),
    }
    if all(importlib.util.find_spec(package) for package in ("torch", "transformers")):
        return made
    return {name: make for name, make in made.items() if name not in NEED_TORCH}


def small_inputs(session: Any) -> dict[str, NDArray[Any]]:
    """Random inputs for a session of ONNX Runtime; integers are those of tokens."""
    rng = np.random.default_rng(0)
    return {
        info.name: rng.integers(0, 800, info.shape)
        if info.type == "tensor(int64)"
        else rng.standard_normal(info.shape).astype(np.float32)
        for info in session.get_inputs()
    }
