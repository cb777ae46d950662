"""A training step under a budget of memory: forward and backward of a small PyTorch model.

python -m benchmarks.training [--layers 12] [--width 64] [--batch 4096] [--share 0.5] [--json FILE]
python -m benchmarks.training --onnx step.onnx

The graph is that of `torch.func.grad`, traced and exported to ONNX: an ordinary model whose inputs
are parameters and data, and whose outputs are the gradients. braid compiles it without a budget and
with a share of what that takes; gradients must be equal. `--onnx` only writes the model.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import braid
from benchmarks.command import run_command
from benchmarks.models.inputs import random_inputs

_RUNS = 9


def make_step(path: Path, layers: int, width: int, batch: int) -> None:
    """Write the gradients of a chain of linear layers and tanh as an ONNX model; needs torch."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    def loss(parameters: Any, x: Any) -> Any:
        for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
            x = torch.tanh(x @ weight + bias)
        return (x * x).mean()

    class Step(torch.nn.Module):
        """The traced gradient as a module, which is what can be exported."""

        def __init__(self, traced: Any) -> None:
            super().__init__()
            self.traced = traced

        def forward(self, x: Any, *parameters: Any) -> tuple[Any, ...]:
            return tuple(self.traced(parameters, x))

    shapes = [shape for _ in range(layers) for shape in ((width, width), (width,))]
    parameters = tuple(torch.randn(*shape) / width**0.5 for shape in shapes)
    x = torch.randn(batch, width)
    traced = make_fx(torch.func.grad(loss))(parameters, x)
    names = ["x", *(f"p{i}" for i in range(len(shapes)))]
    torch.onnx.export(
        Step(traced), (x, *parameters), path, input_names=names, dynamo=True, verbose=False
    )


def measure(path: Path, share: float) -> dict[str, Any]:
    """Bytes of activations and median seconds of a run, without a budget and with one."""
    natural = braid.compile(path)
    budget = int(natural.memory[0].activation_bytes * share)
    start = time.perf_counter()
    bounded = braid.compile(path, memory_budget=budget)
    seconds = time.perf_counter() - start
    inputs = list(random_inputs(path).values())
    times: dict[str, list[float]] = {"natural": [], "bounded": []}
    results: dict[str, Any] = {}
    for _ in range(_RUNS):
        for name, model in (("natural", natural), ("bounded", bounded)):
            begin = time.perf_counter()
            results[name] = model.run(inputs)
            times[name].append(time.perf_counter() - begin)
    for one, other in zip(results["natural"], results["bounded"], strict=True):
        np.testing.assert_array_equal(one, other)
    return {
        "budget_bytes": budget,
        "natural_bytes": natural.memory[0].activation_bytes,
        "bounded_bytes": bounded.memory[0].activation_bytes,
        "natural_seconds": statistics.median(times["natural"]),
        "bounded_seconds": statistics.median(times["bounded"]),
        "compile_seconds": seconds,
    }


def main(
    *,
    layers: int = 12,
    width: int = 64,
    batch: int = 4096,
    share: float = 0.5,
    onnx: Path | None = None,
) -> object:
    """Measure, or write the model."""
    with tempfile.TemporaryDirectory() as folder:
        path: Path = onnx or Path(folder) / "step.onnx"
        make_step(path, layers, width, batch)
        if onnx is not None:
            return None
        figures = measure(path, share)
    print(json.dumps(figures, indent=1))
    return figures


if __name__ == "__main__":
    run_command(main)
