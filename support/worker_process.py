"""Python processes that answer requests, so that a crash ends only one of these."""

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

from braid.support.python_process import python_command, python_environment

_ORDERLY_SECONDS = 0.2
"""The seconds that an idle worker has to end by itself, once there are no more requests."""


class WorkerEndedError(Exception):
    """The process ended before it answered.

    The message has the first line of its output, or the exception that ended it.
    """


class WorkerProcess:
    """A process that answers requests, and its output on standard error."""

    def __init__(self, module: str) -> None:
        """Run a module, which calls `serve`, until `close`."""
        # Not buffered: it is one file with one position for both processes.
        self._messages: IO[bytes] = TemporaryFile(buffering=0)  # noqa: SIM115 (see `close`)
        self._process = subprocess.Popen(
            python_command(module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            env=python_environment(),
            process_group=0,
        )

    def ask(self, request: object, *, seconds: float | None = None) -> Any:
        """Return the answer to a request; both must be picklable.

        Without one within `seconds`, the process is ended, with those that it has started.

        Raises:
            WorkerEndedError: there is no answer, and there will be none to later requests.

        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._messages.seek(0)
        self._messages.truncate()  # what earlier answers made it write
        try:
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], seconds)[0]:
                self.kill()
                raise WorkerEndedError(f"it did not end within {seconds:g} s")
            return pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise WorkerEndedError(self._last_words()) from None

    def kill(self) -> None:
        """End the process, and those that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let the process end, and wait for it."""
        try:
            self._process.communicate()
        finally:
            self._messages.close()

    def abandon(self) -> None:
        """Leave the process to the parent, in a child of fork, which could not end it otherwise."""
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for end in (self._process.stdin, self._process.stdout):
            if end is not None and not end.closed:
                os.dup2(nothing, end.fileno(), inheritable=False)
        os.close(nothing)

    def _last_words(self) -> str:
        self._process.wait()
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        ended = _ended(self._process.returncode)
        if not lines:
            return ended
        is_exception = lines[0].startswith("Traceback ")  # whose message is the last line
        return f"{lines[-1 if is_exception else 0]} ({ended})"


@contextmanager
def worker_process(module: str) -> Generator[WorkerProcess]:
    """Run a module, which calls `serve`, as long as the block runs."""
    worker = WorkerProcess(module)
    try:
        yield worker
    except BaseException:
        worker.kill()
        raise
    finally:
        worker.close()


def serve(answer: Callable[[Any], object], *, idle_seconds: float | None = None) -> None:
    """Answer the requests on the standard input until there are no more, or none for so long.

    Output that anything prints here meanwhile goes to the standard error. The process also ends,
    with those that it has started, soon after the one that asks did, whatever ended that.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while select.select([sys.stdin], [], [], idle_seconds)[0]:
            try:
                request = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(answer(request), answers)
            answers.flush()


def _end_with_parent() -> None:
    """Wait until nobody can ask any more, and end this process and its group."""
    requests = select.poll()
    requests.register(sys.stdin, 0)  # no event but the end of the pipe
    requests.poll()
    time.sleep(_ORDERLY_SECONDS)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _ended(status: int) -> str:
    """Return how a process ended that wrote nothing."""
    if status >= 0:
        return f"exit status {status}"
    return f"it ended by {signal.Signals(-status).name}"
