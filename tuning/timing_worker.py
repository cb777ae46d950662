"""Runs and times kernels in separate processes, so that a crash costs one measurement."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

from braid.dialects.braid.relayout import Array
from braid.support.worker_process import WorkerEndedError, WorkerProcess, worker_process
from braid.tuning.kernel_runs import RunRequest
from braid.tuning.timing import TimingRequest

WORKER = "braid.tuning.worker"
MOST_SECONDS = 60.0
"""The seconds after which a kernel is taken to hang: a measurement takes far less than a second."""


class TimingWorker:
    """Starts the process when the first kernel is timed, and again after a crash or a hang."""

    def __init__(self, ending: ExitStack, most_seconds: float = MOST_SECONDS) -> None:
        self._process: WorkerProcess | None = None
        self._ending = ending
        self._most_seconds = most_seconds

    def seconds(self, request: TimingRequest) -> float | None:
        """Return the seconds of one run by `time_kernel`; None if the kernel ended the process."""
        return self._ask(request)

    def results(self, request: RunRequest) -> tuple[Array, ...] | None:
        """Return the results of one run; None where the kernel ended the process."""
        return self._ask(request)

    def _ask(self, request: object) -> Any:
        try:
            if self._process is None:
                self._process = self._ending.enter_context(worker_process(WORKER))
                self._process.ask(None)  # what it takes to start is not part of a measurement
            return self._process.ask(request, seconds=self._most_seconds)
        except WorkerEndedError:
            self._process = None
            self._ending.close()
            return None


@contextmanager
def timing_worker(most_seconds: float = MOST_SECONDS) -> Generator[TimingWorker]:
    """Yield a worker whose process, if it started one, ends with the block."""
    with ExitStack() as ending:
        yield TimingWorker(ending, most_seconds)
