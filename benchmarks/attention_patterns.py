"""Random attentions: braid beside ONNX Runtime, and beside itself without groups of tiles.

``python -m benchmarks.attention_patterns --count 200 --json out.json`` measures the patterns of
seeds 0 to 199, interleaved, by the time of their thread, and checks answers against ONNX Runtime.
`parts` is braid with every product and softmax in a kernel of its own. The summary lists patterns
that miss a limit: 1.0 of ONNX Runtime's time in geometric mean, 1.3 for each, and 1.1 of the time
of the parts.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from onnx import ModelProto

import braid
from benchmarks.arguments import count
from benchmarks.command import run_command
from benchmarks.generators.attention_models import (
    AttentionPattern,
    attention_model,
    random_pattern,
)
from benchmarks.models.compare import Candidate, interleave_for, largest_error
from benchmarks.models.inputs import random_inputs
from benchmarks.models.peers import Inputs, load_ort
from benchmarks.provenance import provenance
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.passes.pipelines import DEFAULT

_PARTS = ",".join("select-fusion{tiles=false}" if p == "select-fusion" else p for p in DEFAULT)
_MOST_OF_PARTS = 1.1
_MOST_OF_ORT = 1.3
_SECONDS = 0.6
"""The time limit of one pattern, for all contenders together."""


@dataclass(frozen=True)
class Measured:
    """Median seconds of braid, of its parts and of ONNX Runtime, and medians of the ratios of
    turns."""

    seed: int
    name: str
    braid: float
    parts: float
    ort: float
    by_parts: float
    by_ort: float
    error: float


def _load(name: str, model: ModelProto, inputs: Inputs, passes: str | None = None) -> Candidate:
    """Compile by `passes`; details tell whether the groups are others than by other passes."""
    start = time.perf_counter()
    with collect_remarks() as remarks:
        compiled = braid.compile(model, cache=False, passes=passes)
    details = {
        f"{remark.pass_name} {key}": float(remark.data[key] or 0)
        for remark in remarks
        for key in ("groups", "cost")
        if remark.pass_name in ("select-fusion", "select-layouts") and key in remark.data
    }
    ordered = [inputs[spec.name] for spec in compiled.inputs]
    run: Callable[[], Any] = partial(compiled.run, ordered)
    return Candidate(name, run, time.perf_counter() - start, details)


def measure(seed: int, runs: int) -> Measured:
    """Measure the pattern of this seed."""
    pattern: AttentionPattern = random_pattern(seed)
    model = attention_model(pattern)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention.onnx"
        path.write_bytes(model.SerializeToString())
        inputs = random_inputs(path)
        peer = load_ort(path, inputs)
    candidates = [_load("braid", model, inputs), _load("parts", model, inputs, _PARTS), peer]
    results = [[np.array(array) for array in each.run()] for each in candidates]
    error = max(largest_error(result, results[2]) for result in results[:2])
    seconds = interleave_for(candidates, runs, _SECONDS)
    own, parts, ort = map(float, np.median(seconds, 1))
    by_parts, by_ort = (float(np.median(seconds[0] / seconds[n])) for n in (1, 2))
    if candidates[0].details == candidates[1].details:
        by_parts = 1.0  # Nothing is computed by tiles: it is the same code.
    return Measured(seed, pattern.name, own, parts, ort, by_parts, by_ort, error)


def summary(found: Sequence[Measured]) -> str:
    """Return the summary of the figures, and the patterns that miss a limit."""
    by_ort = [each.by_ort for each in found]
    lines = [
        f"{len(found)} attentions: {statistics.geometric_mean(by_ort):.3f} of ONNX Runtime's time "
        f"in geometric mean, {max(by_ort):.2f} at most, above {_MOST_OF_ORT}: "
        f"{sum(ratio > _MOST_OF_ORT for ratio in by_ort)}; slower than parts by more than 10 %: "
        f"{sum(each.by_parts > _MOST_OF_PARTS for each in found)}; "
        f"largest error {max(each.error for each in found):.1e}"
    ]
    short = [x for x in found if x.by_ort > _MOST_OF_ORT or x.by_parts > _MOST_OF_PARTS]
    return "\n".join([*lines, *map(_row, sorted(short, key=lambda x: -x.by_ort))])


def _row(each: Measured) -> str:
    return (
        f"{each.seed:4} {each.name:52} {1e3 * each.braid:8.3f} ms, {each.by_parts:5.2f} of parts, "
        f"{each.by_ort:5.2f} of ONNX Runtime, error {each.error:.0e}"
    )


def main(
    *,
    count: Annotated[int, count, "how many seeds"] = 200,
    first: Annotated[int, "the first seed"] = 0,
    seeds: Annotated[Sequence[int] | None, "these seeds alone"] = None,
    runs: Annotated[int, count] = 31,
) -> object:
    """Measure, print a row for each pattern and a summary, write the figures as JSON."""
    found: list[Measured] = []
    for seed in seeds or range(first, first + count):
        found.append(measure(seed, runs))
        print(_row(found[-1]), flush=True)
    print(summary(found))
    return {**provenance(("onnxruntime",)), "threads": 1, "results": found}


if __name__ == "__main__":
    run_command(main)
