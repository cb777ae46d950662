"""Ways to select layouts on whole models: predicted and measured seconds, reorders, proofs.

``python -m benchmarks.layout_models --models DIR --runs 30 --json out.json`` compiles each model
with exact, greedy, all-NCHW and all-NHWC layouts and runs the four in turns on one thread, beside
the reorders of ONNX Runtime and, with ``--openvino PYTHON`` (an interpreter that has it),
OpenVINO. ``--measure SECONDS`` first times the kernels of each model in all layouts; the
measurements are kept, and all selections then decide by them.
"""

import statistics
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import output_file
from benchmarks.command import keep, run_command
from benchmarks.layout_peers import openvino_reorders_by, ort_reorders
from benchmarks.layout_variants import Decided, Selection, build, decide
from benchmarks.models.compare import Array, Candidate, interleave, largest_error
from benchmarks.models.inputs import random_inputs
from benchmarks.models.make import make
from braid.tuning.tune_model import measure_model

FOUNDATION = (
    "resnet50",
    "mobilenet_v2",
    "squeezenet",
    "densenet121",
    "inception_v1",
    "bert_base",
    "gpt2",
    "unet",
    "cond",
    "loop_if",
)
SELECTIONS = (
    Selection("exact"),
    Selection("greedy", algorithm="greedy"),
    Selection("NCHW", algorithm="fixed:NCHW"),
    Selection("NHWC", algorithm="fixed:NHWC"),
)


@dataclass(frozen=True)
class Row:
    """One selection on one model; seconds, and counts.

    `ratio` is the median over runs of the exact selection's seconds divided by these, measured in
    adjacent runs.
    """

    selection: str
    predicted: float
    gap: float
    reorders: int
    pass_seconds: float
    median: float
    first_quartile: float
    third_quartile: float
    ratio: float
    error: float


@dataclass(frozen=True)
class ModelRows:
    """All selections on one model, and the number of reorders of other runtimes."""

    model: str
    rows: list[Row]
    ort_reorders: int
    openvino_reorders: int | None


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    _: KW_ONLY
    models: Path
    only: Sequence[str] = FOUNDATION
    runs: int = 30
    warmup: int = 3
    seed: int = 1
    measure: float = 0.0
    openvino: Annotated[str | None, "a Python interpreter that has openvino"] = None
    json: Annotated[Path | None, output_file] = None


def measure(path: Path, options: Settings) -> ModelRows:
    """Measure all selections on the model at `path`."""
    if options.measure:
        print(measure_model(path, options.measure), flush=True)
    decided = {s.name: decide(path, s) for s in SELECTIONS}
    models = build(path, SELECTIONS)
    named = random_inputs(path, options.seed)
    inputs = [named[spec.name] for spec in models["exact"].inputs]
    candidates = [
        Candidate(name, lambda m=model: m.run(inputs), 0.0, {}) for name, model in models.items()
    ]
    outputs = {c.name: list(c.run()) for c in candidates}
    seconds = interleave(candidates, options.runs, options.warmup)
    rows = [
        _row(candidate.name, decided[candidate.name], times, seconds[0], outputs)
        for candidate, times in zip(candidates, seconds, strict=True)
    ]
    openvino = openvino_reorders_by(options.openvino, path) if options.openvino else None
    return ModelRows(path.stem, rows, ort_reorders(path), openvino)


def _row(
    name: str,
    decided: Decided,
    times: Sequence[float],
    exact: Sequence[float],
    outputs: dict[str, list[Array]],
) -> Row:
    ratios = [e / t for e, t in zip(exact, times, strict=True)]
    return Row(
        selection=name,
        predicted=decided.cost,
        gap=decided.gap,
        reorders=decided.reorders,
        pass_seconds=decided.pass_seconds,
        median=statistics.median(times),
        first_quartile=float(np.quantile(times, 0.25)),
        third_quartile=float(np.quantile(times, 0.75)),
        ratio=statistics.median(ratios),
        error=largest_error(outputs[name], outputs["NCHW"]),
    )


def show(result: ModelRows) -> None:
    """Print one row a selection."""
    table = Table(
        result.model, "predicted ms", "median ms", "quartiles", "exact ÷", "reorders", "gap", "s"
    )
    for row in result.rows:
        table.add_row(
            row.selection,
            f"{row.predicted * 1e3:.3f}",
            f"{row.median * 1e3:.3f}",
            f"{row.first_quartile * 1e3:.3f} – {row.third_quartile * 1e3:.3f}",
            f"{row.ratio:.3f}",
            str(row.reorders),
            f"{row.gap:.2%}",
            f"{row.pass_seconds:.2f}",
        )
    Console(width=110).print(table)
    openvino = "-" if result.openvino_reorders is None else result.openvino_reorders
    print(f"reorders of ONNX Runtime: {result.ort_reorders}, of OpenVINO: {openvino}", flush=True)


def main(options: Settings) -> None:
    """Measure, print a table a model, and write the figures as JSON."""
    results: list[ModelRows] = []
    for name in options.only:
        results.append(measure(make(options.models, name), options))
        show(results[-1])
        if options.json is not None:
            keep(options.json, results)


if __name__ == "__main__":
    run_command(main)
