"""Times kernels in a process of their own, so that a crash costs one measurement."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import braid
from braid.tuning.timing import TimingRequest


class TimingWorker:
    """Starts the process when the first kernel is timed, and again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def seconds(self, request: TimingRequest) -> float | None:
        """Seconds of one run as `time_kernel` says; None where the kernel ended the process."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            return float(pickle.load(process.stdout))
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self._stop()
            return None

    def _start(self) -> subprocess.Popen[bytes]:
        home = str(Path(braid.__path__[0]).parent)
        paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "braid.tuning.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
        )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        process.wait()
