"""Python processes that answer requests, so that what crashes ends only one of these."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import braid


class WorkerEndedError(Exception):
    """The process ended before it answered; the message is the first line that it wrote."""


class WorkerProcess:
    """A process that answers, and what it writes on its standard error."""

    def __init__(self, process: subprocess.Popen[bytes], messages: IO[bytes]) -> None:
        self._process = process
        self._messages = messages

    def ask(self, request: object) -> Any:
        """The answer to a request; both must be picklable.

        Raises:
            WorkerEndedError: there is none, and there will be none to later requests.

        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise WorkerEndedError(self._last_words()) from None

    def _last_words(self) -> str:
        self._process.wait()
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        return lines[0] if lines else f"exit status {self._process.returncode}"


@contextmanager
def worker_process(module: str) -> Generator[WorkerProcess]:
    """Run `python -m module`, which calls `serve`, as long as the block runs."""
    with TemporaryFile() as messages:
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
            env={**os.environ, "PYTHONPATH": _python_path()},
        )
        try:
            yield WorkerProcess(process, messages)
        except BaseException:
            process.kill()
            raise
        finally:
            process.communicate()


def serve(answer: Callable[[Any], object]) -> None:
    """Answer the requests on the standard input until there are no more."""
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(answer(request), sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _python_path() -> str:
    """Where this process found braid, before what the environment says."""
    home = str(Path(braid.__file__).parents[1])
    return os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
