"""Timing of repeated runs."""

import math
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

_RSS_UNIT = 1024  # Linux counts ru_maxrss in KiB


@dataclass(frozen=True)
class Figures:
    """Seconds of a run, and by how many bytes the peak of the resident memory grew."""

    median: float
    p90: float
    minimum: float
    rss_growth_bytes: int


def peak_rss_bytes() -> int:
    """Return the largest resident memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def measure_runs(run: Callable[[], object], runs: int, warmup: int) -> Figures:
    """Call `run` `warmup` times, then `runs` times with a clock.

    The growth of the memory counts from before the first call.
    """
    before = peak_rss_bytes()
    for _ in range(warmup):
        run()
    seconds: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    growth = peak_rss_bytes() - before
    return Figures(statistics.median(seconds), percentile(seconds, 0.9), min(seconds), growth)


def percentile(values: list[float], fraction: float) -> float:
    """Return the smallest value that at least `fraction` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
