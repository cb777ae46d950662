"""Models with open dims at random sizes, from one artifact, compared with static ones and ONNX
Runtime.

``python -m benchmarks.open_models MODEL.onnx… --json FILE`` compiles each model without options,
draws sizes that ONNX Runtime accepts, and compares results and times (of the thread, in turns). At
the first of these sizes, braid's static artifact is also measured. ``--range width=32..640:32``
says which sizes to draw for a dim, ``--scalar sr=16000`` the value of an input without dims. The
exit status is 1 where a model does not compile, does not run, or differs.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import braid
from benchmarks.arguments import count, output_file
from benchmarks.compile_time import cpu_seconds
from benchmarks.models.compare import Array, Candidate, interleave_for, largest_error
from benchmarks.provenance import provenance
from braid.support.errors import BraidError

TOLERANCE = 1e-3
ATTEMPTS = 400
"""Draws of sizes before a model counts as one that ONNX Runtime runs at no further size."""
MOST_SECONDS = 2.0
"""A run of ONNX Runtime at a size that is kept."""
PLANNED = 15
"""Pairs of runs by which the time of planning is measured."""

COMPILE = (
    "import sys, json, braid; "
    "braid.compile(sys.argv[1], shapes=json.loads(sys.argv[2]) or None).save(sys.argv[3])"
)


@dataclass(frozen=True)
class Range:
    """The sizes that a dim may have."""

    least: int = 1
    most: int = 256
    step: int = 1

    def draw(self, random: np.random.Generator) -> int:
        """Return a size; small ones are as likely as large ones, by their logarithms."""
        drawn = math.exp(random.uniform(math.log(self.least), math.log(self.most + 1)))
        return max(self.least, int(drawn) // self.step * self.step)


@dataclass(frozen=True)
class Compilation:
    """The cost of compiling a model in a process of its own, nothing cached, and of loading it."""

    cpu_seconds: float
    artifact_bytes: int
    load_seconds: float


@dataclass(frozen=True)
class Row:
    """One size: medians of seconds, the largest error, and the seconds to plan for the size."""

    shapes: Mapping[str, Sequence[int]]
    error: float
    ort: float
    open: float
    planning: float
    static: float | None = None


@dataclass
class Report:
    """A model; `refused` has the sizes that only ONNX Runtime accepts, `failure` an error."""

    model: str
    model_bytes: int
    compilation: Compilation | None = None
    static: Compilation | None = None
    rows: list[Row] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    failure: str = ""

    def line(self) -> str:
        """Return a row of the table."""
        if not self.rows or self.compilation is None:
            return f"{self.model:<32} {self.failure}"
        by_ort = [row.open / row.ort for row in self.rows]
        by_static = [row.open / row.static for row in self.rows if row.static]
        within = sum(ratio <= 1 for ratio in by_ort)
        compiled = (
            f"{self.compilation.cpu_seconds:6.1f} s "
            f"({self.compilation.cpu_seconds / self.static.cpu_seconds:.2f})"
            if self.static
            else f"{self.compilation.cpu_seconds:6.1f} s"
        )
        static = f"{statistics.geometric_mean(by_static):.2f}" if by_static else "-"
        return (
            f"{self.model:<32} static {static:>5}  ort {statistics.geometric_mean(by_ort):.2f} "
            f"(≤ 1 at {within} of {len(by_ort)}, at most {max(by_ort):.2f})  compile {compiled}  "
            f"+{(self.compilation.artifact_bytes - self.model_bytes) / 2**20:.1f} MiB  load "
            f"{self.compilation.load_seconds * 1e3:.1f} ms  plan "
            f"{max(row.planning for row in self.rows) * 1e3:.2f} ms  error "
            f"{max(row.error for row in self.rows):.1e} {self.failure}"
        )


class Inputs:
    """Random inputs of a model at random sizes."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        ranges: Mapping[str, Range],
        scalars: Mapping[str, float],
        seed: int,
    ) -> None:
        self._inputs = session.get_inputs()
        self._ranges = ranges
        self._scalars = scalars
        self._random = np.random.default_rng(seed)

    @property
    def are_open(self) -> bool:
        """Return whether any dim is open."""
        return any(not isinstance(d, int) or d < 0 for each in self._inputs for d in each.shape)

    def draw(self, integers: int) -> dict[str, Array]:
        """Return an array for each input; integers are below `integers`."""
        sizes: dict[str, int] = {}
        arrays: dict[str, Array] = {}
        for each in self._inputs:
            shape: list[int] = []
            for axis, dim in enumerate(each.shape):
                if isinstance(dim, int) and dim >= 0:
                    shape.append(dim)
                    continue
                name = dim if isinstance(dim, str) and dim != "?" else f"{each.name}[{axis}]"
                own = self._ranges.get(name, self._ranges.get("*", Range()))
                shape.append(sizes.setdefault(name, own.draw(self._random)))
            arrays[each.name] = self._array(each.name, each.type, shape, integers)
        return arrays

    def _array(self, name: str, kind: str, shape: list[int], integers: int) -> Array:
        dtype = np.dtype(_DTYPES[kind])
        if name in self._scalars:
            return np.full(shape, self._scalars[name], dtype)
        if dtype.kind == "f":
            return self._random.standard_normal(shape).astype(dtype)
        return self._random.integers(0, 2 if dtype.kind == "b" else integers, shape).astype(dtype)


_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(bool)": np.bool_,
}


def accepted(
    session: onnxruntime.InferenceSession, inputs: Inputs, wanted: int
) -> Iterator[tuple[dict[str, Array], list[Array]]]:
    """Draw inputs that ONNX Runtime computes in time, and its outputs; of a shape only once."""
    seen: set[object] = set()
    for attempt in range(ATTEMPTS):
        if len(seen) == wanted:
            return
        feeds = inputs.draw(100 if attempt % 2 else 2)
        key = tuple(array.shape for array in feeds.values())
        if key in seen:
            continue
        start = time.perf_counter()
        try:
            outputs: Any = session.run(None, feeds)
        except Exception:
            continue
        if time.perf_counter() - start <= MOST_SECONDS:
            seen.add(key)
            yield feeds, outputs


def compile_alone(
    path: Path, shapes: Mapping[str, Sequence[int]], output: Path, cache: str
) -> Compilation:
    """Compile in a process of its own, with the given cache, and load the artifact."""
    command = [sys.executable, "-c", COMPILE, str(path), json.dumps(shapes), str(output)]
    seconds = cpu_seconds(command, cache)
    start = time.perf_counter()
    braid.load(output)
    return Compilation(seconds, output.stat().st_size, time.perf_counter() - start)


def planning_seconds(model: braid.Model, inputs: list[Array], others: list[Array]) -> float:
    """Return how much longer a run takes after one at other sizes than after one at the same."""

    def timed() -> float:
        start = time.thread_time()
        model.run(inputs)
        return time.thread_time() - start

    again: list[float] = []
    planned: list[float] = []
    for _ in range(PLANNED):
        model.run(others)
        planned.append(timed())
        again.append(timed())
    return max(0.0, min(planned) - min(again))


def measure(path: Path, options: argparse.Namespace) -> Report:
    """Compile a model, and run it at random sizes."""
    report = Report(path.stem, path.stat().st_size)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    inputs = Inputs(session, dict(options.range), dict(options.scalar), options.seed)
    if not inputs.are_open:
        report.failure = "has no open dims"
        return report
    try:
        with tempfile.TemporaryDirectory() as directory:
            _measure(path, report, session, inputs, options, Path(directory))
    except subprocess.CalledProcessError:
        report.failure = "does not compile"
    except BraidError as error:
        report.failure = str(error).splitlines()[0]
    return report


def _measure(
    path: Path,
    report: Report,
    session: onnxruntime.InferenceSession,
    inputs: Inputs,
    options: argparse.Namespace,
    directory: Path,
) -> None:
    opened = directory / "open.braid"
    with tempfile.TemporaryDirectory() as cache:
        report.compilation = compile_alone(path, {}, opened, cache)
    model = braid.load(opened)
    others: list[Array] | None = None
    with tempfile.TemporaryDirectory() as cache:  # kernels are kept between sizes
        for feeds, expected in accepted(session, inputs, options.sizes):
            given = list(feeds.values())
            shapes = {name: list(array.shape) for name, array in feeds.items()}
            try:
                found = model.run(given)
            except BraidError as error:
                report.refused.append(f"{shapes}: {error.message}")
                continue
            candidates = [
                Candidate("ort", partial(session.run, None, feeds), 0.0, {}),
                Candidate("open", partial(model.run, given), 0.0, {}),
            ]
            if len(report.rows) < options.static:
                fixed = directory / "static.braid"
                compiled = compile_alone(path, shapes, fixed, cache)
                report.static = report.static or compiled
                candidates.append(
                    Candidate("static", partial(braid.load(fixed).run, given), 0.0, {})
                )
            medians = [
                float(np.median(own)) for own in interleave_for(candidates, options.runs, 3.0)
            ]
            planning = planning_seconds(model, given, others or given)
            others = others or given
            error = largest_error(found, expected)
            report.rows.append(Row(shapes, error, *medians[:2], planning, *medians[2:]))
    tried = len(report.rows) + len(report.refused)
    if tried < options.sizes:
        report.failure = f"ONNX Runtime accepts {tried} sizes only"
    if report.refused:
        report.failure = f"refuses {len(report.refused)} sizes, the first {report.refused[0]}"
    if any(row.error > TOLERANCE for row in report.rows):
        report.failure = "results differ"


def _range(text: str) -> tuple[str, Range]:
    name, _, rest = text.rpartition("=")
    bounds, _, step = rest.partition(":")
    least, _, most = bounds.partition("..")
    return name, Range(int(least), int(most or least), int(step or 1))


def _scalar(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    return name, float(value)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--sizes", type=count, default=20)
    parser.add_argument("--static", type=int, default=5, help="sizes compiled statically as well")
    parser.add_argument("--range", type=_range, action="append", default=[])
    parser.add_argument("--scalar", type=_scalar, action="append", default=[])
    parser.add_argument("--runs", type=count, default=31)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=output_file)
    options = parser.parse_args(arguments)
    reports: list[Report] = []
    for path in options.models:
        reports.append(measure(path, options))
        print(reports[-1].line(), flush=True)
        if options.json is not None:
            rows = [asdict(report) for report in reports]
            options.json.write_text(json.dumps({**provenance(), "models": rows}, indent=1))
    return int(any(report.failure for report in reports))


if __name__ == "__main__":
    sys.exit(main())
