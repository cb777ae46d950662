"""Times kernels in a process of their own, so that a crash costs one measurement."""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from braid.lowering.common.worker_process import WorkerEndedError, WorkerProcess
from braid.tuning.timing import TimingRequest

WORKER = "braid.tuning.worker"


class TimingWorker:
    """Starts the process when the first kernel is timed, and again after a crash."""

    def __init__(self) -> None:
        self._process: WorkerProcess | None = None
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ending.__exit__(kind, error, traceback)

    def seconds(self, request: TimingRequest) -> float | None:
        """Seconds of one run as `time_kernel` says; None where the kernel ended the process."""
        if self._process is None:
            self._process = self._ending.enter_context(WorkerProcess(WORKER))
        try:
            return float(self._process.ask(request))
        except WorkerEndedError:
            self._process = None
            self._ending.close()
            return None
