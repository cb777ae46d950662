"""Diagnostics that do not stop a pass: warnings, and the channel that remarks use as well.

An error is raised, as a `BraidError`. What is only worth saying is emitted here, and reaches
whoever installed a handler with `handle_diagnostics`, and `logging` under the name `braid`; without
either it is dropped, so that the Python API stays silent unless asked.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from braid.support import logs
from braid.support.errors import BraidError, Note, SourceLocation

Severity = Literal["error", "warning", "remark", "note"]


@dataclass(frozen=True)
class Diagnostic:
    """One message about one place, with the notes that belong to it."""

    severity: Severity
    message: str
    location: SourceLocation | None = None
    notes: tuple[Note, ...] = ()
    hint: str | None = None

    @classmethod
    def from_error(cls, error: BraidError) -> "Diagnostic":
        """Return the diagnostic of `error`."""
        return cls("error", error.message, error.location, error.notes, error.hint)


Handler = Callable[[Diagnostic], None]

_handler: ContextVar[Handler | None] = ContextVar("braid_diagnostic_handler", default=None)


@contextmanager
def handle_diagnostics(handler: Handler) -> Generator[None]:
    """Send every diagnostic emitted within the `with` block to `handler`."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


@contextmanager
def passing_on_diagnostics() -> Generator[list[Diagnostic]]:
    """Yield the diagnostics emitted within the `with` block, which the handler around it
    gets too.
    """
    emitted: list[Diagnostic] = []
    outer = _handler.get()

    def note(diagnostic: Diagnostic) -> None:
        emitted.append(diagnostic)
        if outer is not None:
            outer(diagnostic)
        else:
            _log(diagnostic)

    with handle_diagnostics(note):
        yield emitted


def emit(diagnostic: Diagnostic) -> None:
    """Log `diagnostic`, unless the innermost handler takes it."""
    if (handler := _handler.get()) is not None:
        handler(diagnostic)
        return
    _log(diagnostic)


_LEVELS: dict[Severity, int] = {
    "error": logs.ERROR,
    "warning": logs.WARNING,
    "remark": logs.INFO,
    "note": logs.DEBUG,
}


def _log(diagnostic: Diagnostic) -> None:
    """Say `diagnostic` through `logging`."""
    hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
    place = "" if diagnostic.location is None else f"{diagnostic.location}: "
    logs.log(_LEVELS[diagnostic.severity], "%s%s%s", place, diagnostic.message, hint)
