"""Interruption of runs: by Ctrl-C, by an exception of a signal handler, or by a time limit.

While a loop of a model runs, the native runtime polls a callback that says whether to stop. The
callback is in Python, since Python runs signal handlers only between its own instructions; it
catches what they raise and raises it again after the run.
"""

import ctypes
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf

from braid.support.errors import BraidError

POLL = ctypes.CFUNCTYPE(ctypes.c_int)
"""The type of the callback that the runtime polls; a nonzero result ends the run."""
_SECONDS: ContextVar[float] = ContextVar("run_seconds", default=inf)


@contextmanager
def limited_runs(seconds: float | None) -> Generator[None]:
    """Make runs in the block raise BraidError if their loops take longer than `seconds`."""
    token = _SECONDS.set(inf if seconds is None else seconds)
    try:
        yield
    finally:
        _SECONDS.reset(token)


_WANTED: ContextVar[Callable[[], bool] | None] = ContextVar("end_wanted", default=None)


@contextmanager
def ended_runs(wanted: Callable[[], bool]) -> Generator[None]:
    """Make runs in the block raise BraidError once `wanted` is true while a loop of them goes on.

    It is asked on the thread of the run, and set by any.
    """
    token = _WANTED.set(wanted)
    try:
        yield
    finally:
        _WANTED.reset(token)


def run_checker() -> Callable[[], None]:
    """Return a function that raises BraidError once a run that begins now takes too long."""
    interruption = Interruption()
    interruption.begin()
    return interruption.check


@dataclass
class _State:
    """The exception that a signal handler raised in a run, and the callback that ends the run.

    That is a time, or that somebody wants it to end.
    """

    raised: BaseException | None = None
    end: float = inf
    wanted: Callable[[], bool] | None = None


class Interruption:
    """The callback that the runtime polls in the runs of one context, with its state."""

    def __init__(self) -> None:
        self._state = _State()
        answers = _answers(self._state)
        next(answers)
        self.poll = POLL(answers.__next__)

    def begin(self) -> None:
        """Start the time limit of a run."""
        seconds = _SECONDS.get()
        self._state.end = inf if seconds == inf else time.monotonic() + seconds
        self._state.wanted = _WANTED.get()

    def check(self) -> None:
        """Raise what ended the run: the exception of a signal handler, or BraidError."""
        error, self._state.raised = self._state.raised, None
        if error is not None:
            raise error
        if self._state.wanted is not None and self._state.wanted():
            raise BraidError("the run was ended from outside")
        if self._state.end != inf and time.monotonic() > self._state.end:
            raise BraidError(
                f"the run takes longer than {_SECONDS.get():g} s",
                hint="a loop of the model may have more iterations than intended",
            )


def _answers(state: _State) -> Generator[int, None, None]:
    """Yield for each poll whether the run is to end: 0 or 1.

    A signal handler raises at the first instruction that Python executes. In a function that is
    before the first line, where no `try` can catch it; a generator resumes within its `try`.
    """
    answer = 0
    while True:
        try:
            yield answer
            answer = int(
                (state.end != inf and time.monotonic() > state.end)
                or (state.wanted is not None and state.wanted())
            )
        except GeneratorExit:
            raise
        except BaseException as error:
            state.raised, answer = error, 1
