"""An int8 ResNet-50: braid beside ONNX Runtime, answers and latency, one thread each.

``python -m benchmarks.int8 MODELS/resnet50.onnx --inputs 200 --json out.json`` quantizes the model
with ONNX Runtime's static quantizer (QDQ form, 8-bit activations and weights) and counts on how
many random inputs both runtimes give the same class.

A network with random weights gives one class for nearly every input. So there is a second, harder
count: the bias of the classifier is moved until its logits have the mean 0 over the calibration
inputs, and classes are told apart by single steps of 8 bits. How often ONNX Runtime agrees with
itself there, with and without its graph optimizations, is the yardstick.
"""

import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

from benchmarks.command import run_command
from benchmarks.models.compare import Candidate, interleave
from benchmarks.models.peers import load_braid, load_ort

Array = NDArray[Any]

CALIBRATION_INPUTS = 24
RUNTIMES = ("braid", "ort", "ort unoptimized")


def images(count: int, shape: tuple[int, ...], seed: int) -> Iterator[Array]:
    """Random images: blocks of random size and contrast on a random colour, float32."""
    generator = np.random.default_rng(seed)
    batch, channels, height, width = shape
    for _ in range(count):
        block = int(2 ** generator.integers(0, 6))
        small = generator.standard_normal((batch, channels, height // block, width // block))
        blocks = small.repeat(block, axis=2).repeat(block, axis=3)
        colour = generator.standard_normal((batch, channels, 1, 1))
        contrast, brightness = generator.uniform(0.2, 2, 2)
        yield (contrast * blocks + brightness * colour).astype(np.float32)


def input_of(model: ModelProto) -> tuple[str, tuple[int, ...]]:
    """Name and shape of the model's only input; an open dim counts as 1."""
    (port,) = model.graph.input
    return port.name, tuple(dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim)


def center_classifier(model: ModelProto, calibration: list[Array]) -> None:
    """Move the bias of the last Gemm so that the logits of these inputs have the mean 0."""
    name, _ = input_of(model)
    session: Any = InferenceSession(model.SerializeToString())
    logits = np.mean([session.run(None, {name: x})[0][0] for x in calibration], axis=0)
    classifier = next(node for node in reversed(model.graph.node) if node.op_type == "Gemm")
    bias = next(t for t in model.graph.initializer if t.name == classifier.input[2])
    moved = numpy_helper.to_array(bias) - logits
    bias.CopyFrom(numpy_helper.from_array(moved.astype(np.float32), bias.name))


def quantize(model: ModelProto, calibration: list[Array], target: Path) -> None:
    """Write the model with 8-bit activations and weights, calibrated on these inputs."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    name, _ = input_of(model)

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._inputs = iter(calibration)

        def get_next(self) -> Any:
            x = next(self._inputs, None)
            return None if x is None else {name: x}

    own = ModelProto()
    own.CopyFrom(model)  # the quantizer moves the weights of the one that it gets to a file
    quantize_static(
        own,
        target,
        Reader(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )


def load_all(path: Path, inputs: Mapping[str, Array]) -> list[Candidate]:
    """Return the runtimes with the model loaded; they read the arrays of `inputs` in every run."""
    options: Any = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    plain: Any = InferenceSession(path, options)
    unoptimized = Candidate(RUNTIMES[2], lambda: plain.run(None, dict(inputs)), 0.0, {})
    return [load_braid(path, inputs), load_ort(path, inputs), unoptimized]


def measure(model: ModelProto, calibration: list[Array], count: int, runs: int) -> dict[str, Any]:
    """Classes over `count` inputs by runtime, and seconds of a run."""
    name, shape = input_of(model)
    buffer = calibration[0].copy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.onnx"
        quantize(model, calibration, path)
        candidates = load_all(path, {name: buffer})
        answers: list[list[int]] = [[] for _ in candidates]
        for image in images(count, shape, seed=1):
            buffer[...] = image
            for given, candidate in zip(answers, candidates, strict=True):
                given.append(int(np.argmax(candidate.run()[0])))
        seconds = interleave(candidates[:2], runs, warmup=2)
    braid, ort, unoptimized = answers
    medians = [statistics.median(times) for times in seconds]
    return {
        "agreement": agreement(braid, ort),
        "agreement_of_ort_with_itself": agreement(unoptimized, ort),
        "classes": len(set(ort)),
        "braid_seconds": medians[0],
        "ort_seconds": medians[1],
        "ratio": medians[0] / medians[1],
    }


def agreement(answers: list[int], others: list[int]) -> float:
    """Return the fraction of equal answers."""
    return sum(a == b for a, b in zip(answers, others, strict=True)) / len(answers)


def main(
    file: Annotated[Path, "a float ResNet-50 that ends in a Gemm"],
    *,
    inputs: int = 200,
    runs: int = 20,
) -> object:
    """Measure, print the figures, and write them as JSON."""
    model = onnx.load(file)
    _, shape = input_of(model)
    calibration = list(images(CALIBRATION_INPUTS, shape, seed=0))
    figures: dict[str, Any] = {"model": file.stem, "inputs": inputs}
    figures["as it is"] = measure(model, calibration, inputs, runs)
    center_classifier(model, calibration)
    figures["centered"] = measure(model, calibration, inputs, runs)
    print(json.dumps(figures, indent=2))
    return figures


if __name__ == "__main__":
    run_command(main)
