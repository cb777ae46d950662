"""One compilation for many shapes: `python -m benchmarks.dynamic_shapes DIRECTORY --json FILE`.

Compiles BERT-base and ResNet-50 with open dims (`python -m benchmarks.models.make DIRECTORY
bert_base_open resnet50_open`) in buckets of sizes, runs each at five shapes, some between the
buckets, and compares results and times with ONNX Runtime's, in turns, on one thread. The exit
status is 1 where results differ by more than 1e-4.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import braid
from benchmarks.command import Judged, run_command
from benchmarks.models.compare import Candidate, interleave, largest_error

TOLERANCE = 1e-4


@dataclass(frozen=True)
class Case:
    """Buckets of a model, and the shapes of its input to run; `integers` below, or floats."""

    model: str
    buckets: dict[str, list[int]]
    shapes: tuple[tuple[int, ...], ...]
    integers: int | None = None


CASES = (
    Case(
        "resnet50_open",
        {"batch": [1, 2, 4, 8]},
        tuple((batch, 3, 224, 224) for batch in (1, 2, 3, 5, 8)),
    ),
    Case(
        "bert_base_open",
        {"batch": [1, 2, 4], "sequence": [32, 64, 128]},
        ((1, 32), (2, 64), (3, 64), (4, 128), (1, 128)),
        30000,
    ),
)


@dataclass(frozen=True)
class Compilation:
    """The cost of compiling a model in a process of its own, and the result."""

    seconds: float
    peak_rss_bytes: int
    artifact_bytes: int


def compile_alone(path: Path, buckets: dict[str, list[int]], output: Path) -> Compilation:
    """Compile in a process of its own, whose memory is then its own as well."""
    arguments = f"{str(path)!r}, {buckets!r}, {str(output)!r}"
    script = f"from benchmarks.dynamic_shapes import child; child({arguments})"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    seconds, rss = json.loads(result.stdout)
    return Compilation(seconds, rss, output.stat().st_size)


def child(path: str, buckets: dict[str, list[int]], output: str) -> None:
    start = time.perf_counter()
    braid.compile(path, shape_buckets=buckets).save(output)
    seconds = time.perf_counter() - start
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps([seconds, rss]))


def measure(case: Case, path: Path, artifact: Path, runs: int) -> list[dict[str, Any]]:
    """Results and times at every shape of the case."""
    model = braid.load(artifact)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    rows: list[dict[str, Any]] = []
    for shape in case.shapes:
        rng = np.random.default_rng(sum(shape))
        x = rng.integers(0, case.integers, shape) if case.integers else rng.standard_normal(shape)
        x = x.astype(np.int64 if case.integers else np.float32)
        candidates = [
            Candidate("ort", partial(session.run, None, {name: x}), 0.0, {}),
            Candidate("braid", partial(model.run, [x]), 0.0, {}),
        ]
        error = largest_error(model.run([x]), session.run(None, {name: x}))
        peer, own = (statistics.median(times) for times in interleave(candidates, runs, 1))
        rows.append({"shape": shape, "error": error, "seconds": own, "ratio_to_ort": own / peer})
        print(
            f"{case.model} {list(shape)}: error {error:.1e}, {own * 1e3:.1f} ms, "
            f"{own / peer:.2f} of ONNX Runtime",
            flush=True,
        )
    return rows


def main(directory: Path, *, runs: int = 10) -> object:
    report: dict[str, Any] = {}
    for case in CASES:
        path = directory / f"{case.model}.onnx"
        with tempfile.TemporaryDirectory() as folder:
            artifact = Path(folder) / "model.braid"
            compiled = compile_alone(path, case.buckets, artifact)
            print(
                f"{case.model}: {path.stat().st_size / 1e6:.0f} MB, compiled in "
                f"{compiled.seconds:.1f} s with {compiled.peak_rss_bytes / 1e6:.0f} MB to "
                f"{compiled.artifact_bytes / 1e6:.0f} MB",
                flush=True,
            )
            shapes = measure(case, path, artifact, runs)
        report[case.model] = {
            "buckets": case.buckets,
            "model_bytes": path.stat().st_size,
            "compilation": compiled,
            "shapes": shapes,
        }
    errors = [row["error"] for model in report.values() for row in model["shapes"]]
    return Judged(report, max(errors) <= TOLERANCE)


if __name__ == "__main__":
    run_command(main)
