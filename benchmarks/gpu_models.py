"""Whole models of `torch_models` with compressible weights: few numbers, repeated in every layout.

A tensor of weights is a table of a few thousand random numbers, and a step along each of its dims
is a prime number of steps in the table. Such tensors have full rank and no symmetry, and their
elements are spread as those of a new module, so that results and times tell as much as theirs. But
each of their lines repeats a line nearby, shifted, whatever the order of dims: what is compiled,
hundreds of megabytes, is packed into a few.

Numbers are those of f16. A model in f16 is compared with the same model in f32.
"""

from math import prod
from typing import Any

import torch
from onnx import ModelProto
from torch import Tensor, nn

from benchmarks.models.torch_models import MODELS, export_module, with_weights

Inputs = tuple[Tensor, ...]

_TABLE = 4093
"""Numbers of a tensor; a prime, so that no step along a dim comes back to the same one early."""
_STEPS = (1013, 1, 397, 151)
"""Steps in the table from one element of a dim to the next."""
_FEWEST = 1 << 14
"""Elements of tensors that are changed; others keep all their numbers."""
_SPREAD = 0.02
"""Amplitudes of the noise that is added to biases and scales, which in a new module are all 0 and
all 1."""


def make_regular(name: str, element: str = "f32") -> ModelProto:
    """Return the model `name` with such weights, in opset 18."""
    dtype = {"f32": torch.float32, "f16": torch.float16}[element]
    inputs = tuple(
        tensor.half().to(dtype) if tensor.is_floating_point() else tensor
        for tensor in MODELS[name][1]()
    )
    return export_module(regular_module(name).to(dtype), inputs)


def regular_module(name: str) -> nn.Module:
    """Return the module, in evaluation mode, with numbers that f16 can hold all through."""
    module = with_weights(MODELS[name][0], torch.float32)
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.copy_(_regular(parameter, generator))
    _normalize(module, MODELS[name][1]())
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            tensor.copy_(tensor.half())
    return module


def _normalize(module: nn.Module, inputs: Inputs) -> None:
    """Normalize batches by the statistics of these inputs, with one variance for all channels.

    Else folded weights would have as many numbers as there are channels.
    """

    def take(layer: nn.BatchNorm2d, given: Inputs) -> None:
        layer.weight.fill_(1.0)
        layer.running_var.fill_(given[0].var().half())

    layers = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    hooks = [layer.register_forward_pre_hook(take) for layer in layers]
    with torch.no_grad():
        module(*inputs)
    for hook in hooks:
        hook.remove()


def _regular(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Numbers as widely spread as those of `weights`, or those with some noise."""
    shape: Any = weights.shape
    if prod(shape) < _FEWEST:
        return weights + _SPREAD * torch.randn(shape, generator=generator)
    table = weights.std() * torch.randn(_TABLE, generator=generator)
    place = torch.zeros((), dtype=torch.int64)
    for step, extent in zip(_STEPS, shape, strict=False):
        place = place[..., None] + step * torch.arange(extent)
    return table[place % _TABLE]
