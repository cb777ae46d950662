"""Processes that run cases one by one and may die: a crash or a hang costs one case."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

READY = "ready"
STARTING_SECONDS = 300.0
"""For imports from a cold disk, and the start of a driver."""
ENDING_SECONDS = 20.0


class CaseLost(Exception):
    """There is no answer, for this reason."""


@dataclass
class CaseProcess:
    """A process that runs `serve(channel, *arguments)`.

    That sends READY within `starting_seconds`, then an answer to each request, until a request is
    None. A process that ends, or is ended, is replaced by a new one. CUDA does not survive
    the `method` fork.
    """

    serve: Callable[..., None]
    arguments: tuple[Any, ...] = ()
    method: str = "spawn"
    starting_seconds: float = STARTING_SECONDS
    channel: Connection = field(init=False)
    request: Any = None
    deadline: float = 0.0
    _process: BaseProcess = field(init=False)
    _ready: bool = False

    def start(self) -> None:
        """Start a process, in place of one that has ended."""
        context: Any = multiprocessing.get_context(self.method)
        self.channel, far_end = context.Pipe()
        own = (far_end, *self.arguments)
        self._process = context.Process(target=self.serve, args=own, daemon=True)
        self._process.start()
        far_end.close()
        self._ready = False

    def give(self, request: Any, seconds: float) -> None:
        """Lets it work on a request; its seconds begin when the process is ready.

        Raises CaseLost if the process has ended before, or does not become ready; it is then
        replaced.
        """
        if not self._ready:
            if not self.channel.poll(self.starting_seconds):
                self.restart()
                raise CaseLost(f"the process was not ready after {self.starting_seconds:g} seconds")
            self._receive()
            self._ready = True
        self.request, self.deadline = request, monotonic() + seconds
        try:
            self.channel.send(request)
        except OSError:
            raise self._lost() from None

    def take(self) -> Any:
        """Return the answer. Raises CaseLost where there is none, and the process is another one
        then."""
        self.request = None
        return self._receive()

    def _receive(self) -> Any:
        try:
            return self.channel.recv()
        except (EOFError, OSError):  # the latter if a request has not been read
            raise self._lost() from None

    def _lost(self) -> CaseLost:
        """Join the process, and return how it ended; a new one follows."""
        self.request = None
        self._process.join()
        code = self._process.exitcode
        self.start()
        return CaseLost(f"the process ended with status {code}")

    def restart(self) -> None:
        """End the process, whatever it does, for another one."""
        self.request = None
        self._process.kill()
        self._process.join()
        self.start()

    def answer(self, request: Any, seconds: float) -> Any:
        """Start, wait and take the answer. Raises CaseLost also where it takes more than
        `seconds`."""
        self.give(request, seconds)
        if not self.channel.poll(seconds):
            self.restart()
            raise CaseLost("took too long")
        return self.take()

    def end(self) -> None:
        """Lets the process end, which must have no request, and kills it if it does not."""
        with suppress(OSError):  # it has ended
            self.channel.send(None)
        self._process.join(ENDING_SECONDS)
        self._process.kill()
        self._process.join()


def run_side_by_side(
    processes: Sequence[CaseProcess],
    requests: Sequence[Any],
    seconds: float,
    deadline: float = float("inf"),
) -> Iterator[tuple[CaseProcess, Any, Any]]:
    """Each request with its answer, or a CaseLost, and the process that gave it, as they come.

    Starts and ends the processes. Each request may take `seconds`; after `deadline`, of the
    monotonic clock, no more is begun.
    """
    pending = list(reversed(requests))
    for process in processes:
        process.start()
    while True:
        for process in processes:
            if process.request is None and pending and monotonic() < deadline:
                yield from _given(process, pending.pop(), seconds)
        busy = [process for process in processes if process.request is not None]
        if not busy and (not pending or monotonic() >= deadline):
            break
        ready = wait([process.channel for process in busy], timeout=1)
        for process in busy:
            request = process.request
            if process.channel in ready:
                yield process, request, _taken(process)
            elif monotonic() > process.deadline:
                process.restart()
                yield process, request, CaseLost("took too long")
    for process in processes:
        process.end()


def _given(
    process: CaseProcess, request: Any, seconds: float
) -> Iterator[tuple[CaseProcess, Any, Any]]:
    try:
        process.give(request, seconds)
    except CaseLost as lost:
        yield process, request, lost


def _taken(process: CaseProcess) -> Any:
    try:
        return process.take()
    except CaseLost as lost:
        return lost
