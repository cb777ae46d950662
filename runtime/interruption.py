"""Runs that end before they are done: by Ctrl-C, by what a signal's handler raises, by a limit.

While a loop of a model goes on, the native runtime asks now and then whether the run is to end.
Python handles signals between two instructions of its own, so that it is Python that has to be
asked, and has to catch what comes of it.
"""

import ctypes
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf

from braid.support.errors import BraidError

POLL = ctypes.CFUNCTYPE(ctypes.c_int)
"""The type of what is asked; nonzero ends the run."""
_SECONDS: ContextVar[float] = ContextVar("run_seconds", default=inf)


@contextmanager
def limited_runs(seconds: float | None) -> Generator[None]:
    """End each run whose loops go on for longer than so many seconds, with an error."""
    token = _SECONDS.set(inf if seconds is None else seconds)
    try:
        yield
    finally:
        _SECONDS.reset(token)


@dataclass
class _State:
    """What was raised in the run, and when it has to end."""

    raised: BaseException | None = None
    end: float = inf


class Interruption:
    """What the runtime asks in the runs of one context."""

    def __init__(self) -> None:
        self._state = _State()
        answers = _answers(self._state)
        next(answers)
        self.poll = POLL(answers.__next__)

    def begin(self) -> None:
        """Begin a run."""
        seconds = _SECONDS.get()
        self._state.end = inf if seconds == inf else time.monotonic() + seconds

    def check(self) -> None:
        """Raise what ended the run, if that was asked here: BraidError where it took too long."""
        error, self._state.raised = self._state.raised, None
        if error is not None:
            raise error
        if self._state.end != inf and time.monotonic() > self._state.end:
            raise BraidError(
                f"the run takes longer than {_SECONDS.get():g} s",
                hint="a loop of the model may have more steps than it is meant to",
            )


def _answers(state: _State) -> Generator[int, None, None]:
    """Give an answer each time that one is asked for.

    A handler of a signal raises as soon as instructions of Python are executed: in a function that
    would be before its first line, where nothing catches it; a generator goes on within `try`.
    """
    answer = 0
    while True:
        try:
            yield answer
            answer = int(state.end != inf and time.monotonic() > state.end)
        except GeneratorExit:
            raise
        except BaseException as error:
            state.raised, answer = error, 1
