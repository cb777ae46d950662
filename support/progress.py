"""Progress of a compilation, reported to whoever listens."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

Stage = Literal["passes", "emit", "compile"]
"""Passes decide; kernels are then emitted as MLIR, and compiled to objects."""


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps of a stage are over; `name` is the pass or kernel that is done last.

    A stage begins with `done` 0 and no name. Kernels that are in the cache are not compiled, and so
    not counted. A model that is lowered more than once, such as for a memory budget, goes through
    the stages as often.
    """

    stage: Stage
    done: int
    total: int
    name: str = ""

    def __str__(self) -> str:
        name = f": {self.name}" if self.name else ""
        return f"{self.stage} {self.done} of {self.total}{name}"


Listener = Callable[[Progress], object]

_listener: ContextVar[Listener | None] = ContextVar("braid_progress_listener", default=None)


@contextmanager
def telling_progress(listener: Listener | None) -> Generator[None]:
    """Report what this thread compiles in the block to `listener`; None keeps the present listener.

    An exception that it raises ends the compilation.
    """
    if listener is None:
        yield
        return
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Steps:
    """Counts the steps of a stage for the listener, and does nothing without one."""

    def __init__(self, stage: Stage, total: int) -> None:
        """Begin a stage of `total` steps."""
        self._stage: Stage = stage
        self._total, self._done = total, 0
        self._listener = _listener.get() if total else None
        self._tell("")

    def finish(self, name: str) -> None:
        """Report the end of one more step, with its name."""
        self._done += 1
        self._tell(name)

    def _tell(self, name: str) -> None:
        if self._listener is not None:
            self._listener(Progress(self._stage, self._done, self._total, name))
