"""Measure what tuning gains a model on this machine, and how far its defaults are from the best.

``python -m benchmarks.tuning MODEL.onnx… [--seconds 500] [--whole 3] [--json FILE]`` begins each
model with an empty cache, or continues with the caches of earlier runs in ``--caches DIR``. It is
compiled with default schedules, tuned as by ``braid tune --time SECONDS`` beside the vendor's
library, and compiled twice again with ``kernels=best``, the second time with ``untuned=tune``,
which searches whatever has no record. Both run in turns. Then all schedules of the `--whole`
slowest kernels are measured in turns. The fastest ones and the default are measured again, in more
turns, since the least of many times is a lucky one. The distance of the default from another one is
the median of the quotients of all turns, with their quartiles: load that lasts longer than a turn
is in both times.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import braid
from benchmarks.arguments import output_file
from benchmarks.command import keep, run_command
from benchmarks.models.inputs import random_inputs
from benchmarks.provenance import provenance
from braid.driver.pipeline import passes_for
from braid.driver.read_source import read_source
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.costs.schedule_records import load_tuned
from braid.targets.kernels.kernel_family import LEVELS
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.measured_task import MeasuredTask
from braid.tuning.timed_kernels import TimedKernels
from braid.tuning.timing_worker import timing_worker
from braid.tuning.tune_kernels import Tuning
from braid.tuning.tune_model import tune_model
from braid.universe import make_context

ROUNDS, AGAIN = 4, 31
"""Rounds of measuring all schedules of a kernel, and of the best ones and the default."""
FINALISTS = 4


def say(line: str) -> None:
    print(line, flush=True)


@contextmanager
def cache_of(model: str, caches: Path | None) -> Generator[None]:
    """Return the model's folder in `caches`, by default an empty one without earlier results."""
    before = os.environ.get("BRAID_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="braid-tuning-") as empty:
        os.environ["BRAID_CACHE_DIR"] = empty if caches is None else str(caches / model)
        try:
            yield
        finally:
            os.environ.pop("BRAID_CACHE_DIR")
            if before is not None:
                os.environ["BRAID_CACHE_DIR"] = before


def compiled_untuned(path: Path) -> tuple[braid.Model, dict[str, Any]]:
    """Compile the model with an empty cache, as where nothing was searched or compiled."""
    with cache_of(path.stem, None):
        return compiled(path)


def in_turns(models: Sequence[braid.Model], path: Path, runs: int) -> list[list[float]]:
    """Seconds of each run on its one thread, without what other processes take."""
    inputs = random_inputs(path)
    times: list[list[float]] = [[] for _ in models]
    for _ in range(runs + 2):
        for model, own in zip(models, times, strict=True):
            start = time.thread_time()
            model(**inputs)
            own.append(time.thread_time() - start)
    return [own[2:] for own in times]


def largest_error(models: Sequence[braid.Model], path: Path) -> float:
    """Return the largest error of the second model's results, relative to those of the first."""
    first, second = (_outputs(model, path) for model in models)
    pairs = zip(first, second, strict=True)
    return max(float(np.abs(b - a).max() / np.abs(a).max()) for a, b in pairs)


def _outputs(model: braid.Model, path: Path) -> list[Any]:
    results = model(**random_inputs(path))
    return list(results) if isinstance(results, tuple) else [results]


def compiled(path: Path, **options: Any) -> tuple[braid.Model, dict[str, Any]]:
    """Return a model on one thread, the seconds that it took, and how many kernels have a
    record."""
    start = time.monotonic()
    model = braid.compile(path, cache=False, **options)
    seconds = time.monotonic() - start
    return model, {"seconds": seconds, **model.kernels._asdict()}


def found_kernels() -> list[dict[str, Any]]:
    """Return what was recorded of each kernel, with times in microseconds."""
    return [
        {
            "kernel": kernel.what,
            "default": kernel.baseline * 1e6,
            "generated": kernel.seconds * 1e6,
            "library": None if kernel.library is None else kernel.library * 1e6,
            "chosen": "library" if kernel.keeps_library else str(kernel.chosen or "default"),
        }
        for kernel in load_tuned().values()
    ]


def slowest_beside_library(kernels: Sequence[Mapping[str, Any]]) -> float:
    """Return the chosen kernel's time divided by the library's, for the kernel where that is
    largest."""
    beside = [k for k in kernels if k["library"] is not None and k["chosen"] != "library"]
    return max((k["generated"] / k["library"] for k in beside), default=0.0)


def tasks_of(path: Path) -> list[KernelTask]:
    """Return the kernels of a model, the slowest first."""
    context = make_context()
    module = read_source(context, path).module
    passes = passes_for(module)
    place = [pass_.name for pass_ in passes].index("select-schedules")
    run_pipeline(context, module, passes[:place])
    return kernel_tasks(module)


def whole_space(task: KernelTask) -> dict[str, Any]:
    """Compare the default schedule with the best one of all; microseconds."""
    default = task.default[1]
    with timing_worker() as worker:
        measured = MeasuredTask(task, TimedKernels(worker, None))
        points = list(dict.fromkeys(p for level in range(LEVELS) for p in measured.space(level)))
        times = _rounds(measured, points, ROUNDS)
        best = sorted(times, key=lambda point: min(times[point]))[:FINALISTS]
        again = _rounds(measured, list(dict.fromkeys([default, *best])), AGAIN)
    behind = {point: _quartiles(again[default], own) for point, own in again.items()}
    fastest = max(behind, key=lambda point: behind[point][1])
    return {
        "kernel": str(task),
        "schedules": len(points),
        "ran": len(times),
        "default": statistics.median(again[default]) * 1e6,
        "best": statistics.median(again[fastest]) * 1e6,
        "schedule": str(fastest),
        "default by best": behind[fastest][1],
        "quartiles": [behind[fastest][0], behind[fastest][2]],
    }


def _quartiles(times: Sequence[float], by: Sequence[float]) -> list[float]:
    """Return the quartiles of the quotients of all turns."""
    return statistics.quantiles([a / b for a, b in zip(times, by, strict=True)], n=4)


def _rounds(
    measured: MeasuredTask, points: Sequence[KernelSchedule], rounds: int
) -> dict[KernelSchedule, list[float]]:
    """Seconds of those that ran every time."""
    times: dict[KernelSchedule, list[float]] = {point: [] for point in points}
    for _ in range(rounds):
        for point, own in times.items():
            if (seconds := measured.seconds(point)) is not None:
                own.append(seconds)
    return {point: own for point, own in times.items() if len(own) == rounds}


def tuned(path: Path, seconds: float, whole: int, runs: int, caches: Path | None) -> dict[str, Any]:
    """All figures of one model."""
    say(f"== {path.stem}")
    untuned, first = compiled_untuned(path)
    with cache_of(path.stem, caches):
        start = time.monotonic()
        report = tune_model(path, Tuning(seconds=seconds, model_class="auto", say=say))
        took = time.monotonic() - start
        say(str(report))
        best, second = compiled(path, kernels="best")
        _, third = compiled(path, kernels="best", untuned="tune")
        times = in_turns([untuned, best], path, runs)
        medians, gain = [statistics.median(own) for own in times], _quartiles(*times)
        kernels = found_kernels()
        result: dict[str, Any] = {
            "model": path.stem,
            "tuning seconds": took,
            "kernels searched": report.searched,
            "known before": report.known,
            "faster": report.faster,
            "library is faster": report.library,
            "left": report.left,
            "by kernels": report.before / report.after if report.after else 1.0,
            "untuned ms": medians[0] * 1e3,
            "tuned ms": medians[1] * 1e3,
            "gain": gain[1],
            "quartiles": [gain[0], gain[2]],
            "error": largest_error([untuned, best], path),
            "compiled": {"untuned": first, "tuned": second, "again, on_miss=tune": third},
            "slowest beside the library": slowest_beside_library(kernels),
            "kernels": kernels,
            "whole spaces": [],
        }
        for task in tasks_of(path)[:whole]:
            result["whole spaces"].append(one := whole_space(task))
            say(json.dumps(one))
    say(json.dumps({k: v for k, v in result.items() if k not in ("kernels", "whole spaces")}))
    return result


def main(
    models: Sequence[Path],
    *,
    seconds: float = 500.0,
    whole: Annotated[int, "0 leaves those of --json"] = 3,
    runs: int = 31,
    caches: Annotated[Path | None, "where runs that are cut short go on"] = None,
    json: Annotated[Path | None, output_file, "has results of other models too"] = None,
) -> None:
    report: dict[str, Any] = {}
    if json is not None and json.exists():
        report = loads(json.read_text())
    known = {one["model"]: one for one in report.get("models", ())}
    for path in models:
        spaces = known.get(path.stem, {}).get("whole spaces", [])
        known[path.stem] = tuned(path, seconds, whole, runs, caches)
        if not whole:
            known[path.stem]["whole spaces"] = spaces
        packages = ("onednn-cpu-gomp", "llvmlite", "numpy")
        report = {**provenance(packages), "models": list(known.values())}
        if json is not None:
            keep(json, report)
    gains = [one["gain"] for one in known.values()]
    say(f"{statistics.geometric_mean(gains):.3f} times as fast in geometric mean")


if __name__ == "__main__":
    run_command(main)
