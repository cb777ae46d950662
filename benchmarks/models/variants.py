"""Models of `torch_models` in other types: f16, bf16, and int8 by ONNX Runtime's quantizers."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx
import torch
from onnx import ModelProto

from benchmarks.int8 import CALIBRATION_INPUTS, images, input_of, quantize
from benchmarks.models.torch_models import make_torch

HALF = ("bert_base", "mobilenet_v2", "resnet18", "resnet50")
"""Models whose products are worth doing in 16 bits."""

STATIC = ("mobilenet_v2", "resnet18", "resnet50")
"""Models of images, which are quantized by calibration (QDQ)."""


def make_static(name: str) -> ModelProto:
    """Return the model with 8-bit activations and weights between QDQ nodes, calibrated on
    images."""
    model = make_torch(name)
    calibration = list(images(CALIBRATION_INPUTS, input_of(model)[1], seed=0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.onnx"
        quantize(model, calibration, path)
        return onnx.load(path)


def make_dynamic(name: str) -> ModelProto:
    """Return the model with 8-bit weights, whose activations are quantized at run time."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "f32.onnx", Path(folder) / "int8.onnx"
        onnx.save(make_torch(name), source)
        quantize_dynamic(source, target, weight_type=QuantType.QInt8)
        return onnx.load(target)


VARIANTS: dict[str, Callable[[], ModelProto]] = {
    **{f"{name}_f16": partial(make_torch, name, torch.float16) for name in HALF},
    **{f"{name}_bf16": partial(make_torch, name, torch.bfloat16) for name in HALF},
    **{f"{name}_int8": partial(make_static, name) for name in STATIC},
    "bert_base_int8": partial(make_dynamic, "bert_base"),
}
"""Name to what makes the model."""
