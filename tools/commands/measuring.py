"""Timing of repeated runs, and the memory that they take."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from braid.tools.commands.resident_memory import reset_peak, resident_memory


@dataclass(frozen=True)
class Figures:
    """Seconds of one of `runs` runs, and by how many bytes the resident memory grew at most.

    `mapped_bytes` of these are pages of files, such as weights that are read for the first time;
    `output_bytes` is the memory of the results of one run.
    """

    runs: int
    median: float
    p90: float
    minimum: float
    rss_growth_bytes: int
    mapped_bytes: int
    output_bytes: int

    def other_bytes(self, arena_bytes: int) -> int:
        """Return growth that is neither the arena, nor results, nor pages of files; 0 at least."""
        known = arena_bytes + self.output_bytes + self.mapped_bytes
        return max(0, self.rss_growth_bytes - known)

    def to_json(self, arena_bytes: int) -> dict[str, object]:
        """Return all figures with units in their names, for a model with an arena of this size."""
        return {
            "runs": self.runs,
            "median_seconds": self.median,
            "p90_seconds": self.p90,
            "minimum_seconds": self.minimum,
            "arena_bytes": arena_bytes,
            "output_bytes": self.output_bytes,
            "peak_rss_growth_bytes": self.rss_growth_bytes,
            "mapped_file_bytes": self.mapped_bytes,
            "other_bytes": self.other_bytes(arena_bytes),
        }

    def describe(self, arena_bytes: int) -> str:
        """Return the same as three lines of text."""
        return (
            f"median {self.median * 1e3:.3f} ms, p90 {self.p90 * 1e3:.3f} ms, "
            f"minimum {self.minimum * 1e3:.3f} ms over {self.runs} runs\n"
            f"arena {_mebibytes(arena_bytes)}, "
            f"peak RSS growth {_mebibytes(self.rss_growth_bytes)}\n"
            f"outputs {_mebibytes(self.output_bytes)}, "
            f"pages of files {_mebibytes(self.mapped_bytes)}, "
            f"anything else {_mebibytes(self.other_bytes(arena_bytes))}"
        )


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.2f} MiB"


def measure_runs(
    run: Callable[[], Sequence[NDArray[Any]]],
    runs: int,
    warmup: int,
    begin: Callable[[], None] = lambda: None,
) -> Figures:
    """Call `run` `warmup` times, then `runs` times with a clock, each after `begin`.

    The growth of the memory counts from before the first call, whatever the process had before.
    """
    reset_peak()
    before = resident_memory()
    outputs = 0
    for _ in range(warmup):
        begin()
        run()
    seconds: list[float] = []
    for _ in range(runs):
        begin()
        start = time.perf_counter()
        results = run()
        seconds.append(time.perf_counter() - start)
        outputs = sum(array.nbytes for array in results)
        del results  # otherwise two sets of them are in memory during the next run
    after = resident_memory()
    return Figures(
        runs,
        statistics.median(seconds),
        percentile(seconds, 0.9),
        min(seconds),
        # Pages of files that left the memory meanwhile would hide as much growth.
        rss_growth_bytes=after.peak - before.current + max(0, before.mapped - after.mapped),
        mapped_bytes=max(0, after.mapped - before.mapped),
        output_bytes=outputs,
    )


def percentile(values: list[float], fraction: float) -> float:
    """Return the smallest value that at least `fraction` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
