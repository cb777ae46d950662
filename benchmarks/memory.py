"""Models that do not fit: one huge tensor between small ones, fused and not.

python -m benchmarks.memory [--cases attention,unfold] [--rounds 9] [--json out.json]

Every model of `benchmarks.oversize` runs three times, each in a process whose RLIMIT_DATA permits a
fifth of braid's plan without fusion: by ONNX Runtime and by braid without fusion, which should run
out of memory, and by braid, whose result is compared with numpy's, computed in pieces. `peak`
is the planned memory for what is neither input nor weight (arena and scratch of all workers,
results apart), `growth` that of the process's resident memory with the result. Times are of one
thread, at sizes that fit in memory: medians of interleaved runs.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

import braid
from benchmarks.command import run_command
from benchmarks.oversize.case import Array, Case
from benchmarks.oversize.cases import CASES
from braid.driver.pipeline import graph_passes
from braid.passes.fusion.select_fusion import SelectFusionPass
from braid.runtime.model import Model
from braid.targets.machines.load import load_target

_ALLOWED_SHARE = 5
"""The children may take this fraction (1 ÷ it) of the peak without fusion, and their results."""

_TOLERANCE = 1e-5
"""Largest difference from the reference, over the largest element of the reference."""


def unfused_passes() -> list[Any]:
    """Return the default pipeline in which ops with large tensors between them stay apart."""
    return [
        replace(pass_, tiles=False) if isinstance(pass_, SelectFusionPass) else pass_
        for pass_ in graph_passes(load_target())
    ]


def compiled(model: onnx.ModelProto) -> dict[str, Model]:
    """Return the model with and without fusion, for one thread."""
    return {"fused": braid.compile(model), "unfused": braid.compile(model, passes=unfused_passes())}


def run_child(kind: str, model: Path, folder: Path, allowance: int) -> dict[str, Any]:
    """Return the report of a child process, see `benchmarks.oversize.child`."""
    arguments = [kind, str(model), str(folder / "inputs.npz"), str(folder / "y.npy")]
    command = [sys.executable, "-m", "benchmarks.oversize.child", *arguments, str(allowance)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.splitlines() or [""])[-1]
        status = "out of memory" if "bad_alloc" in done.stderr else "failed"
        message = f"exit status {done.returncode}: {last}"
        return {"status": status, "growth": None, "message": message}
    return json.loads(done.stdout.splitlines()[-1])


def measure_memory(case: Case) -> dict[str, Any]:
    """Planned and measured memory of the huge model, and how far its result is off."""
    model, inputs = case.build(case.huge), case.inputs(case.huge)
    variants = compiled(model)
    peaks = {name: variant.arena_bytes for name, variant in variants.items()}
    result_bytes = sum(
        int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize
        for spec in variants["fused"].outputs
    )
    allowance = peaks["unfused"] // _ALLOWED_SHARE + result_bytes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(model, folder / "model.onnx")
        np.savez(folder / "inputs.npz", **{f"{i:02}": x for i, x in enumerate(inputs)})
        for variant in ("fused", "unfused"):
            variants[variant].save(folder / f"{variant}.braid")
        reports = {"ort": run_child("ort", folder / "model.onnx", folder, allowance)}
        for variant in ("unfused", "fused"):
            reports[variant] = run_child("braid", folder / f"{variant}.braid", folder, allowance)
        error = None
        if reports["fused"]["status"] == "ok":
            error = difference(np.load(folder / "y.npy"), case.pieces(*inputs))
    return {
        "dims": dict(case.huge),
        "peak": peaks,
        "peak_ratio": peaks["fused"] / peaks["unfused"],
        "result_bytes": result_bytes,
        "allowance": allowance,
        "children": reports,
        "error": error,
        "equal": error is not None and error <= _TOLERANCE,
    }


def difference(actual: Array, expected: Array) -> float:
    """Return the largest difference over the largest element."""
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def measure_time(case: Case, rounds: int) -> dict[str, Any]:
    """Seconds per run at a size that fits, with and without fusion and by ONNX Runtime."""
    import onnxruntime as ort

    model, inputs = case.build(case.fits), case.inputs(case.fits)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options)
    feeds = dict(zip((value.name for value in session.get_inputs()), inputs, strict=True))
    runs: dict[str, Callable[[], object]] = {
        name: lambda variant=variant: variant(*inputs) for name, variant in compiled(model).items()
    }
    runs["ort"] = lambda: session.run(None, feeds)
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            begin = perf_counter()
            run()
            if number:  # The first round is a warm-up.
                samples[name].append(perf_counter() - begin)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    return {
        "dims": dict(case.fits),
        "median": medians,
        "spread": {name: max(values) / min(values) - 1 for name, values in samples.items()},
        "time_ratio": medians["fused"] / medians["unfused"],
    }


def table(reports: Mapping[str, Mapping[str, Any]]) -> Table:
    """One row per model."""
    found = Table(title="oversize suite, one thread")
    for column in (
        "model",
        "peak MiB",
        "unfused MiB",
        "ratio",
        "growth MiB",
        "ort",
        "unfused",
        "fused",
        "error",
        "ms fused / unfused / ort",
        "time ratio",
    ):
        found.add_column(column)
    for name, report in reports.items():
        memory, time = report["memory"], report["time"]
        children = memory["children"]
        milliseconds = (1e3 * time["median"][key] for key in ("fused", "unfused", "ort"))
        found.add_row(
            name,
            *(f"{memory['peak'][key] / 2**20:.1f}" for key in ("fused", "unfused")),
            f"1/{1 / memory['peak_ratio']:.0f}",
            f"{(children['fused']['growth'] or 0) / 2**20:.1f}",
            *(children[key]["status"] for key in ("ort", "unfused", "fused")),
            "-" if memory["error"] is None else f"{memory['error']:.1e}",
            " / ".join(f"{value:.1f}" for value in milliseconds),
            f"{time['time_ratio']:.2f}",
        )
    return found


def main(
    *,
    cases: Annotated[str | None, "names, separated by commas; all by default"] = None,
    rounds: int = 9,
) -> object:
    """Measures the chosen models, prints a table, and writes the figures as JSON."""
    names = cases.split(",") if cases else [case.name for case in CASES]
    reports: dict[str, dict[str, Any]] = {}
    for case in CASES:
        if case.name in names:
            reports[case.name] = {
                "memory": measure_memory(case),
                "time": measure_time(case, rounds),
            }
            print(f"{case.name}: done", file=sys.stderr)
    Console(width=200).print(table(reports))
    return reports


if __name__ == "__main__":
    run_command(main)
