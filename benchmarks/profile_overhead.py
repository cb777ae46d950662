"""Measure the cost of `braid run --profile`: with and without counters, interleaved.

``python -m benchmarks.profile_overhead --models DIR --runs 30 --json out.json`` measures the files
of DIR that ``--only`` names, one thread, on seeded random inputs; ``--control-flow`` adds the
models of `benchmarks.models.control_flow`, which are made if they are missing. The figure is the
median over runs of seconds with counters / seconds of the adjacent run without.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import braid
from benchmarks.command import run_command
from benchmarks.models.compare import Array, Candidate, Run, interleave
from benchmarks.models.control_flow import MODELS
from benchmarks.models.control_flow.samples import samples
from benchmarks.models.inputs import random_inputs
from benchmarks.models.make import make


@dataclass(frozen=True)
class Overhead:
    """Medians in seconds, and the median and quartiles of the ratio of neighbouring runs."""

    model: str
    counters: int
    plain: float
    profiled: float
    ratio: float
    first_quartile: float
    third_quartile: float


def measure(path: Path, runs: int, seed: int) -> Overhead:
    """Compare the model at `path` with itself under profiling."""
    named = samples(path.stem, seed)[0] if path.stem in MODELS else random_inputs(path, seed)
    plain, profiled = braid.compile(path), braid.compile(path, profile=True)
    inputs = [named[spec.name] for spec in plain.inputs]
    # A clock tick is as long as a short model; several runs count as one.
    repeats = _repeats(_repeated(plain, inputs, 1))
    candidates = [
        Candidate(name, _repeated(model, inputs, repeats), 0.0, {})
        for name, model in (("plain", plain), ("profiled", profiled))
    ]
    seconds = [[t / repeats for t in times] for times in interleave(candidates, runs, warmup=3)]
    ratios = [b / a for a, b in zip(*seconds, strict=True)]
    low, middle, high = (float(np.quantile(ratios, q)) for q in (0.25, 0.5, 0.75))
    before, after = (statistics.median(times) for times in seconds)
    return Overhead(path.stem, len(profiled.profile()), before, after, middle, low, high)


def _repeated(model: braid.Model, inputs: list[Array], count: int) -> Run:
    return lambda: [model.run(inputs) for _ in range(count)][-1]


def _repeats(run: Run, least: float = 0.01) -> int:
    """Return how many runs take at least `least` seconds."""
    (seconds,) = interleave([Candidate("once", run, 0.0, {})], 3, warmup=2)
    return max(1, round(least / min(seconds)))


def main(
    *,
    models: Path,
    only: Sequence[str] = ("resnet50", "mobilenet_v2"),
    control_flow: bool = False,
    runs: int = 30,
    seed: int = 1,
) -> object:
    """Measure, print a line a model, and write the figures as JSON."""
    names = [*only, *(MODELS if control_flow else ())]
    results: list[Overhead] = []
    for name in names:
        result = measure(make(models, name), runs, seed)
        results.append(result)
        print(
            f"{name:16} {result.plain * 1e3:9.3f} ms, with {result.counters} counters "
            f"{result.profiled * 1e3:9.3f} ms: {result.ratio:.3f} "
            f"({result.first_quartile:.3f} – {result.third_quartile:.3f})",
            flush=True,
        )
    return results


if __name__ == "__main__":
    run_command(main)
