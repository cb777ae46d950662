"""Measuring one model on several runtimes side by side."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Run = Callable[[], Sequence[Array]]


@dataclass(frozen=True)
class Candidate:
    """A runtime with the model loaded; `run` computes its outputs once, on one thread."""

    name: str
    run: Run
    load_seconds: float
    details: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """Seconds of a run, and how far the outputs are from the reference's.

    `error` is the largest ‖y − ref‖∞ / ‖ref‖∞ over the outputs, `ratio` the median in units of
    the reference's median.
    """

    model: str
    runtime: str
    median: float
    first_quartile: float
    third_quartile: float
    minimum: float
    ratio: float
    error: float
    load_seconds: float
    details: Mapping[str, float]


def largest_error(actual: Sequence[Array], reference: Sequence[Array]) -> float:
    """Return the largest relative difference over all outputs, infinite for another shape."""
    errors = [0.0]
    for a, r in zip(actual, reference, strict=True):
        if a.shape != r.shape:
            return float("inf")
        scale = float(np.abs(r.astype(np.float64)).max(initial=0.0)) or 1.0
        distance = np.abs(a.astype(np.float64) - r.astype(np.float64)).max(initial=0.0)
        errors.append(float(distance) / scale if np.isfinite(distance) else float("inf"))
    return max(errors)


def interleave(
    candidates: Sequence[Candidate],
    runs: int,
    warmup: int,
    untimed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Return the seconds of each run of each candidate.

    Runs take turns, so that load or a changing clock rate affects all of them equally. A turn
    begins with `untimed` runs, which absorb effects of the previous runtime. The `clock` may be
    that of the thread, if the machine is shared and only one thread runs.
    """
    for candidate in candidates:
        for _ in range(warmup):
            candidate.run()
    seconds: list[list[float]] = [[] for _ in candidates]
    gc.disable()
    try:
        for _ in range(runs):
            for times, candidate in zip(seconds, candidates, strict=True):
                for _ in range(untimed):
                    candidate.run()
                start = clock()
                candidate.run()
                times.append(clock() - start)
    finally:
        gc.enable()
    return seconds


def interleave_for(candidates: Sequence[Candidate], runs: int, most: float) -> Array:
    """Return the seconds of `interleave` by the time of the thread, a row for each candidate.

    There are as many turns as fit into about `most` seconds, but 5 at least and `runs` at most.
    """
    start = time.perf_counter()
    for each in candidates:
        each.run()
    taken = time.perf_counter() - start
    turns = max(5, min(runs, int(most / (2 * taken))))
    return np.array(interleave(candidates, turns, 1, 1, time.thread_time))


def compare(
    path: Path,
    candidates: Sequence[Candidate],
    reference: str,
    runs: int,
    warmup: int,
    untimed: int = 0,
) -> list[Result]:
    """Measure the candidates against the one called `reference`; see `interleave`."""
    outputs = {candidate.name: list(candidate.run()) for candidate in candidates}
    expected = outputs[reference]
    check_variance(path, expected)
    seconds = interleave(candidates, runs, warmup, untimed)
    medians = {c.name: statistics.median(s) for c, s in zip(candidates, seconds, strict=True)}
    return [
        Result(
            model=path.stem,
            runtime=candidate.name,
            median=medians[candidate.name],
            first_quartile=float(np.quantile(times, 0.25)),
            third_quartile=float(np.quantile(times, 0.75)),
            minimum=min(times),
            ratio=medians[candidate.name] / medians[reference],
            error=largest_error(outputs[candidate.name], expected),
            load_seconds=candidate.load_seconds,
            details=candidate.details,
        )
        for candidate, times in zip(candidates, seconds, strict=True)
    ]


def check_variance(path: Path, outputs: Sequence[Array]) -> None:
    """Refuse a model whose outputs are constant or one-hot: agreement on them means nothing."""
    for output in outputs:
        values = output.astype(np.float64)
        largest = np.abs(values).max(initial=0.0)
        if values.size > 2 and (np.abs(values) > 1e-6 * largest).sum() == 1:
            raise SystemExit(f"{path}: an output of the reference is one number and zeros")
        if output.size > 1 and not values.std() > 1e-6 * np.abs(values).max():
            raise SystemExit(f"{path}: an output of the reference has no variance")
