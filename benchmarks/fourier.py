"""Fourier transforms of f32, beside ONNX Runtime and SciPy (pocketfft).

``python -m benchmarks.fourier --json FILE`` times `DFT` of complex and of real signals, one and 32
of them, and the inverse to real signals, which only SciPy supports. All run on one thread, and
calls from Python are part of the times: the least of the medians of interleaved turns.
``--lengths`` selects others. The exit status is 1 where an error is too large.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import onnxruntime
import scipy
from numpy.typing import NDArray
from onnx import ModelProto

import braid
from benchmarks.arguments import count
from benchmarks.command import Judged, run_command
from benchmarks.models.operators import make_operator
from benchmarks.provenance import provenance

LENGTHS = (64, 100, 256, 997, 1000, 1024, 4096, 16384, 65536)
BATCHES = (1, 32)
KINDS = ("complex", "real", "inverse real")
ULPS = 2
"""Errors that are allowed, in units of the last place times the root of log2 of the length."""
_TURNS = 15
_SECONDS = 0.01
"""The seconds of each turn."""

_FFT: Any = scipy.fft

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """So many transforms of `length` points, of one of `KINDS`."""

    kind: str
    length: int
    batch: int

    @property
    def inputs(self) -> Array:
        """Return random signals, or half spectra, as `DFT` takes them."""
        extent = self.length // 2 + 1 if self.kind == "inverse real" else self.length
        shape = (self.batch, extent, 1 if self.kind == "real" else 2)
        return np.random.default_rng(0).standard_normal(shape, np.float32)

    @property
    def model(self) -> ModelProto:
        """Return the transform along dim 1."""
        attributes: dict[str, Any] = {
            "complex": {},
            "real": {"onesided": 1},
            "inverse real": {"onesided": 1, "inverse": 1},
        }[self.kind]
        known = [np.array(self.length), np.array(1)]
        return make_operator("DFT", self.inputs.shape, known=known, **attributes)

    def by_scipy(self, x: Array) -> Array:
        """Return SciPy's results, for numbers of its own types."""
        if self.kind == "inverse real":
            return _FFT.irfft(x, self.length, axis=1)
        # Without a length, which SciPy would take longer to look at.
        return (_FFT.rfft if self.kind == "real" else _FFT.fft)(x, axis=1)

    def calls(self) -> Iterator[tuple[str, Callable[[], Array]]]:
        """Yield what is timed, by name; results are tensors of pairs but for SciPy's."""
        x, model = self.inputs, self.model
        compiled = braid.compile(model, threads=1)
        yield "braid", lambda: compiled.run([x])[0]
        yield "scipy", partial(self.by_scipy, as_numbers(x))
        if self.kind != "inverse real":
            options: Any = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            session: Any = onnxruntime.InferenceSession(model.SerializeToString(), options)
            yield "onnxruntime", lambda: session.run(None, {"x0": x})[0]


def as_numbers(x: Array) -> Array:
    """Return a tensor of pairs as complex numbers, one of single ones without its last dim."""
    if x.shape[-1] == 1:
        return x[..., 0]
    return x.view(np.complex64 if x.dtype == np.float32 else np.complex128)[..., 0]


def seconds_of(call: Callable[[], object], calls: int) -> float:
    """Return the median time of several calls."""
    times: list[float] = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measured(case: Case) -> dict[str, Any]:
    """Return the seconds of a case by runtime, and the relative error of braid's result."""
    calls = dict(case.calls())
    expected = case.by_scipy(as_numbers(case.inputs.astype(np.float64)))
    found = as_numbers(np.ascontiguousarray(calls["braid"]()))
    error = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    runs = {name: max(3, int(_SECONDS / seconds_of(call, 5))) for name, call in calls.items()}
    turns = [
        {name: seconds_of(call, runs[name]) for name, call in calls.items()} for _ in range(_TURNS)
    ]
    seconds = {name: min(turn[name] for turn in turns) for name in calls}
    others = [time for name, time in seconds.items() if name != "braid"]
    ratio = seconds["braid"] / min(others)
    times = ", ".join(f"{name} {1e6 * time:.1f} µs" for name, time in seconds.items())
    print(f"{case.kind}, {case.batch} × {case.length}: {times}, ratio {ratio:.2f}", flush=True)
    return {
        "kind": case.kind,
        "length": case.length,
        "batch": case.batch,
        "seconds": seconds,
        "ratio": ratio,
        "error": error,
    }


def is_accurate(row: Mapping[str, Any]) -> bool:
    """Return whether the error of a row is within rounding."""
    return row["error"] <= ULPS * np.finfo(np.float32).eps * np.log2(row["length"]) ** 0.5


def main(*, lengths: Annotated[Sequence[int], count] = LENGTHS) -> object:
    """Measure, write the rows, and return the exit status."""
    rows = [
        measured(Case(kind, length, batch))
        for kind in KINDS
        for batch in BATCHES
        for length in lengths
    ]
    content = {**provenance(("onnxruntime", "scipy", "numpy")), "threads": 1, "results": rows}
    return Judged(content, all(map(is_accurate, rows)))


if __name__ == "__main__":
    run_command(main)
