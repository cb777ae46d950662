"""Times kernels in a process of their own, so that a crash costs one measurement."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from braid.support.worker_process import WorkerEndedError, WorkerProcess, worker_process
from braid.tuning.timing import TimingRequest

WORKER = "braid.tuning.worker"


class TimingWorker:
    """Starts the process when the first kernel is timed, and again after a crash."""

    def __init__(self, ending: ExitStack) -> None:
        self._process: WorkerProcess | None = None
        self._ending = ending

    def seconds(self, request: TimingRequest) -> float | None:
        """Seconds of one run as `time_kernel` says; None where the kernel ended the process."""
        if self._process is None:
            self._process = self._ending.enter_context(worker_process(WORKER))
        try:
            return float(self._process.ask(request))
        except WorkerEndedError:
            self._process = None
            self._ending.close()
            return None


@contextmanager
def timing_worker() -> Generator[TimingWorker]:
    """A worker whose process, if it started one, ends with the block."""
    with ExitStack() as ending:
        yield TimingWorker(ending)
