"""Worker processes that are kept for later requests: to start one takes a tenth of a second."""

import atexit
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from braid.support.worker_process import WorkerProcess

IDLE_SECONDS = 30.0
"""The seconds without a request after which a worker of a pool ends:
`serve(answer, idle_seconds=…)`."""
_FRESH_SECONDS = IDLE_SECONDS / 2
"""The idle seconds up to which a worker may be lent again: it must not end when it is asked."""
_KEPT = 4
"""The number of idle workers of a module that are kept, for the memory that they take."""


@dataclass(frozen=True)
class _Idle:
    worker: WorkerProcess
    since: float


class WorkerPool:
    """The idle workers of this process, by their modules; any number of threads may borrow some.

    A child of fork begins with none; when the process ends, so do they.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, list[_Idle]] = {}
        self._all: set[WorkerProcess] = set()
        self._of_parent: set[WorkerProcess] = set()
        os.register_at_fork(after_in_child=self._abandon)
        atexit.register(self.close)

    @contextmanager
    def worker(self, module: str) -> Generator[WorkerProcess]:
        """Yield a process of `python -m module`, for the block alone; it is ended if that
        raises.
        """
        worker = self._taken(module) or self._started(module)
        try:
            yield worker
        except BaseException:
            self._end(worker)
            raise
        with self._lock:
            idle = self._idle.setdefault(module, [])
            keeps = len(idle) < _KEPT
            if keeps:
                idle.append(_Idle(worker, time.monotonic()))
        if not keeps:
            self._end(worker)

    def close(self) -> None:
        """End all idle workers."""
        with self._lock:
            idle = [own.worker for workers in self._idle.values() for own in workers]
            self._idle.clear()
        for worker in idle:
            self._end(worker)

    def _taken(self, module: str) -> WorkerProcess | None:
        """Return the idle worker that was used last, or None; those that were idle too long end."""
        latest = time.monotonic() - _FRESH_SECONDS
        with self._lock:
            idle = self._idle.pop(module, [])
            stale = [own.worker for own in idle if own.since < latest]
            fresh = [own for own in idle if own.since >= latest]
            found = fresh.pop().worker if fresh else None
            self._idle[module] = fresh
        for worker in stale:
            self._end(worker)
        return found

    def _started(self, module: str) -> WorkerProcess:
        worker = WorkerProcess(module)
        self._all.add(worker)
        return worker

    def _end(self, worker: WorkerProcess) -> None:
        """End the worker at once: it has nothing to save."""
        worker.kill()
        worker.close()
        self._all.discard(worker)

    def _abandon(self) -> None:
        self._lock = threading.Lock()  # another thread may have held it
        self._idle.clear()
        for worker in self._all:
            worker.abandon()
        # Kept, since a process that is forgotten is waited for.
        self._of_parent, self._all = self._of_parent | self._all, set()


POOL = WorkerPool()
"""The pool of this process."""
