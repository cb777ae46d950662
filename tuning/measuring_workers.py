"""Measure the kernels of a search: in a process of this machine, or by workers on several."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from braid.dialects.braid.relayout import Array
from braid.tuning.kernel_runs import RunRequest
from braid.tuning.timing import TimingRequest
from braid.tuning.timing_worker import timing_worker


class MeasuringWorker(Protocol):
    """Times and runs kernels, always on the same machine."""

    def seconds(self, request: TimingRequest) -> float | None:
        """Return the seconds of one run by `time_kernel`; None if the kernel crashes or hangs."""
        ...

    def results(self, request: RunRequest) -> tuple[Array, ...] | None:
        """Return the results of one run; None where the kernel crashes or hangs."""
        ...


class LostWorkerError(Exception):
    """A worker is gone, and its measurements with it."""


Search = Callable[[int, MeasuringWorker], None]
"""The search of the kernel of a number; it is begun anew where its worker is lost."""


class MeasuringWorkers(Protocol):
    """Searches kernels, as many at once as `count` says."""

    count: int

    def for_each(self, numbers: int, search: Search) -> None:
        """Search the kernels 0 to `numbers` - 1, begun in that order."""
        ...


class LocalWorker:
    """A process of this machine, by which kernels are searched one after the other."""

    count = 1

    def __init__(self, worker: MeasuringWorker) -> None:
        self._worker = worker

    def for_each(self, numbers: int, search: Search) -> None:
        """See `MeasuringWorkers`."""
        for number in range(numbers):
            search(number, self._worker)


@contextmanager
def local_worker() -> Generator[LocalWorker]:
    """Yield a worker whose process ends with the block."""
    with timing_worker() as worker:
        yield LocalWorker(worker)
