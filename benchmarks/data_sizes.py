"""Models whose data decide sizes, beside ONNX Runtime: `python -m benchmarks.data_sizes`.

A detector with non-maximum suppression, a text-to-speech model with predicted durations, and a
speech recognizer with a decoding loop are compiled once and run at random inputs of random sizes.
Both run on one thread, in turns. The exit status is 1 where shapes or results differ, or where
braid takes more time in the geometric mean of a model's inputs.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto

import braid
from benchmarks.command import Judged, run_command
from benchmarks.models.compare import Array, Candidate, interleave_for, largest_error
from benchmarks.models.detector import make_detector
from benchmarks.models.recognizer import BANDS, make_recognizer
from benchmarks.models.text_to_speech import PHONEMES, make_text_to_speech
from benchmarks.provenance import provenance

TOLERANCE = 1e-4
_TURNS, _SECONDS = 25, 4.0
"""Turns at one size, and about how long they may take."""

Inputs = Mapping[str, Array]


@dataclass(frozen=True)
class Case:
    """A model, and random inputs of it."""

    make: Callable[[], ModelProto]
    draw: Callable[[np.random.Generator], Inputs]


@dataclass(frozen=True)
class Row:
    """One run: extents of inputs and outputs, the largest error, CPU seconds and their quartiles.

    Times are medians over turns; `spread` is the larger distance between quartiles over a median.
    """

    model: str
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    error: float
    braid: float
    onnxruntime: float
    spread: float

    @property
    def ratio(self) -> float:
        """Return braid's time over ONNX Runtime's."""
        return self.braid / self.onnxruntime


def _image(random: np.random.Generator) -> Inputs:
    height, width = 32 * random.integers(8, 14, 2)
    return {"images": random.standard_normal((1, 3, height, width)).astype(np.float32)}


def _text(random: np.random.Generator) -> Inputs:
    return {"phonemes": random.integers(0, PHONEMES, (1, random.integers(20, 120)))}


def _sound(random: np.random.Generator) -> Inputs:
    time = random.integers(200, 1000)
    return {"features": random.standard_normal((1, time, BANDS)).astype(np.float32)}


CASES: dict[str, Case] = {
    "detector": Case(make_detector, _image),
    "text to speech": Case(make_text_to_speech, _text),
    "recognizer": Case(make_recognizer, _sound),
}


def peer(model: ModelProto) -> Any:
    """Return ONNX Runtime's session on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def measure(name: str, model: braid.Model, session: Any, inputs: Inputs) -> Row:
    """Return the errors and times at one input."""
    outputs = model.run_named(inputs)
    wanted = session.run(None, dict(inputs))
    candidates = [
        Candidate("braid", lambda: list(model.run_named(inputs).values()), 0.0, {}),
        Candidate("onnxruntime", partial(session.run, None, dict(inputs)), 0.0, {}),
    ]
    low, middle, high = np.quantile(
        interleave_for(candidates, _TURNS, _SECONDS), [0.25, 0.5, 0.75], axis=1
    )
    return Row(
        name,
        {key: array.shape for key, array in inputs.items()},
        {key: array.shape for key, array in outputs.items()},
        largest_error(list(outputs.values()), wanted),
        *middle.tolist(),
        spread=float(((high - low) / middle).max()),
    )


def main(*, sizes: int = 10, seed: int = 0) -> Judged:
    """Measure each model at `sizes` inputs."""
    rows: list[Row] = []
    means: dict[str, float] = {}
    for name, case in CASES.items():
        proto, random = case.make(), np.random.default_rng(seed)
        model, session = braid.compile(proto, threads=1), peer(proto)
        own = [measure(name, model, session, case.draw(random)) for _ in range(sizes)]
        for row in own:
            print(
                f"{name}: {[*row.inputs.values()]} to {[*row.outputs.values()]}, braid "
                f"{1e3 * row.braid:.1f} ms, ONNX Runtime {1e3 * row.onnxruntime:.1f} ms, ratio "
                f"{row.ratio:.2f}, spread {row.spread:.0%}, error {row.error:.1e}"
            )
        means[name] = statistics.geometric_mean(row.ratio for row in own)
        print(f"{name}: ratio {means[name]:.2f} in the geometric mean")
        rows += own
    figures = {**provenance(("onnxruntime",)), "ratios": means, "rows": rows}
    is_right = max(row.error for row in rows) <= TOLERANCE and max(means.values()) <= 1
    return Judged(figures, is_right)


if __name__ == "__main__":
    run_command(main)
