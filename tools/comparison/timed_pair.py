"""Times of two models side by side, on random inputs: of whole runs, and of each kernel."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from braid.runtime.model import Model
from braid.tools.comparison.decided_kernels import MEASURED, DecidedKernel

Run = Callable[[], object]


def timed_pair(a: Run, b: Run, runs: int) -> tuple[float, float]:
    """Return the median seconds of each, over `runs` runs in turns after a warm-up run."""
    a()
    b()
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for run, own in zip((a, b), seconds, strict=True):
            begun = time.perf_counter()
            run()
            own.append(time.perf_counter() - begun)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def kernel_seconds(model: Model, run: Run, runs: int) -> dict[str, float]:
    """Return the seconds of each op in one run, by name, for a model compiled with counters."""
    run()
    model.reset_profile()
    for _ in range(runs):
        run()
    return {name: entry.seconds / runs for name, entry in model.profile().items()}


def with_measured(
    kernels: Sequence[DecidedKernel], seconds: Mapping[str, float]
) -> list[DecidedKernel]:
    """Return the kernels with the times that were measured; what was not keeps what is expected."""
    return [
        replace(kernel, seconds=seconds[kernel.name], source=MEASURED)
        if kernel.name in seconds
        else kernel
        for kernel in kernels
    ]
