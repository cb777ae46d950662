"""The models of the record, and the targets and CPUs that each is compiled for."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, helper

from benchmarks.fpga.polybench import KERNELS
from benchmarks.models import darts, decoding, operators
from benchmarks.models.hand_written import (
    constant,
    make_loop_if,
    make_transformer_block,
    model_of,
    node,
    normal,
    value,
)
from benchmarks.models.make import makers
from braid.targets.machines.load import target_names

CPUS = ("x86-64-v3", "x86-64-v4")
GPU, CHIP, FPGA = "gpu-h100", "npu-davinci", "fpga-sim"
FLOATS = "hls-floats"
"""In place of a target: designs of functions in f32, for which no target exists."""
DSPS = 220

ON_A_GPU = frozenset(
    {"bert_base", "gpt2", "lstm", "mobilenet_v2", "resnet18", "squeezenet", "unet", "vit_base"}
    | {"column_512x512", "cum_sum_8x128x768_1", "gelu_128x768", "group_norm_1x64x56x56"}
    | {"layer_norm_128x768", "max_pool_1x256x28x28_3", "reduce_sum_65536x16_0"}
    | {"softmax_1536x128", "top_k_128x1000_1000"}
)
ON_A_CHIP = frozenset({"conv_gru", "lstm", "resnet18", "squeezenet", "transformer_block"})
"""Large models that are compiled for these too; small ones are compiled for every target."""

COMPILED = {
    ("small_cells", CPUS[1]),
    ("small_loop_if", CPUS[0]),
    ("small_loop_if", CPUS[1]),
    ("small_transformer_block", CPUS[0]),
}
"""Small models and CPUs for which objects count, in addition to texts."""

Maker = Callable[[], ModelProto]


@dataclass(frozen=True, order=True)
class Case:
    """A model for a target whose host is `cpu`; `compiled`, its objects and PTX count too."""

    model: str
    target: str
    cpu: str
    compiled: bool = False

    def __str__(self) -> str:
        return f"{self.model} {self.target} {self.cpu}".strip()


def make_bytes() -> ModelProto:
    """Two quantized convolutions with a pooling between them, of the kinds that exporters write."""
    rng = np.random.default_rng(6)
    known = [
        constant("step", 0.03, np.float32),
        constant("zero", 3, np.int8),
        constant("weight_step", 0.01, np.float32),
        constant("weight_zero", 0, np.int8),
    ]
    nodes = []

    def rounded(source: str) -> str:
        nodes.append(node("QuantizeLinear", [source, "step", "zero"], [f"{source}.bytes"]))
        bytes_ = [f"{source}.bytes", "step", "zero"]
        nodes.append(node("DequantizeLinear", bytes_, [f"{source}.rounded"]))
        return f"{source}.rounded"

    def conv(source: str, result: str, inputs: int, outputs: int, size: int) -> str:
        numbers = rng.integers(-127, 128, (outputs, inputs, size, size))
        known.append(constant(f"{result}.w", numbers, np.int8))
        known.append(normal(rng, f"{result}.b", outputs))
        step = [f"{result}.w", "weight_step", "weight_zero"]
        nodes.append(node("DequantizeLinear", step, [f"{result}.weight"]))
        operands = [source, f"{result}.weight", f"{result}.b"]
        pads = [size // 2] * 4
        nodes.append(node("Conv", operands, [f"{result}.sum"], pads=pads))
        nodes.append(node("Relu", [f"{result}.sum"], [result]))
        return rounded(result)

    x = conv(rounded("x"), "first", 3, 8, 3)
    nodes.append(node("MaxPool", [x], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]))
    x = conv(rounded("pooled"), "second", 8, 4, 1)
    nodes.append(node("GlobalAveragePool", [x], ["y"]))
    inputs, outputs = [value("x", [1, 3, 8, 8])], [value("y", [1, 4, 1, 1])]
    return model_of(helper.make_graph(nodes, "bytes", inputs, outputs, known))


SMALL: dict[str, Maker] = {
    "small_bytes": make_bytes,
    "small_cells": lambda: darts.make_darts_cells(darts.V2, 12, cells=1, width=16, size=9),
    "small_loop_if": make_loop_if,
    "small_transformer_block": lambda: make_transformer_block(16, 32, 2, 64),
}
"""Name to what makes the model, in milliseconds."""


def small_cases() -> Iterator[Case]:
    """Return the cases that the tests check: each backend, in seconds."""
    for name in SMALL:
        yield from (Case(name, "host", cpu, (name, cpu) in COMPILED) for cpu in CPUS)
    yield Case("small_bytes", FPGA, CPUS[0])
    yield Case("small_bytes", "npu-small", CPUS[0], compiled=True)
    yield Case("small_loop_if", CHIP, CPUS[0])
    yield Case("small_loop_if", GPU, CPUS[0], compiled=True)
    yield Case("small_transformer_block", GPU, CPUS[1])


def cases(models: Iterable[str]) -> Iterator[Case]:
    """Every case of the small models, and of the models with these names."""
    done = {str(case) for case in small_cases()}
    yield from small_cases()
    yield from (case for case in _small_ones_everywhere() if str(case) not in done)
    yield from (Case(name, FLOATS, "") for name in KERNELS)
    for name in models:
        yield from (Case(name, "host", cpu) for cpu in CPUS)
        if name in ON_A_GPU:
            yield Case(name, GPU, CPUS[1])
        if name in ON_A_CHIP:
            yield Case(name, CHIP, CPUS[1])


def _small_ones_everywhere() -> Iterator[Case]:
    """On both CPUs if kernels of the host are emitted."""
    for name in SMALL:
        for target in sorted(target_names()):
            cpus = CPUS if target.startswith(("host", "npu")) else CPUS[:1]
            yield from (Case(name, target, cpu) for cpu in cpus)


def names_of(folder: Path | None) -> list[str]:
    """Return the models of `folder`, and those that need only the `onnx` package."""
    own = {*operators.MODELS, *decoding.MODELS}
    given = () if folder is None else (path.stem for path in folder.glob("*.onnx"))
    return sorted({*own, *given})


def source_of(name: str, folder: Path | None) -> Path | ModelProto:
    """Return the file of a model in `folder`, else the model itself."""
    if name in SMALL:
        return SMALL[name]()
    path = None if folder is None else folder / f"{name}.onnx"
    return path if path is not None and path.exists() else makers()[name]()


def digest_of(source: Path | ModelProto) -> str:
    """Return a digest by which a model is the same as that of the record or not."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return hashlib.sha256(source.SerializeToString(deterministic=True)).hexdigest()[:16]


def selected_cases(every: Sequence[Case], words: Sequence[str]) -> list[Case]:
    """Return the cases whose names have one of `words` in them; all where there are none."""
    return [case for case in every if not words or any(word in str(case) for word in words)]
