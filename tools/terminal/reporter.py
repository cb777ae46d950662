"""Report while a command works: to standard error, and in what `--json` collects.

Results go to standard output, and everything else here. `-q` leaves out all but errors, `-v` adds
what is decided and how long it takes, `-vv` every step; with `--json`, diagnostics are part of the
document instead.
"""

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from braid import __version__
from braid.support import logs
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.tools.terminal.answer import Answer, document
from braid.tools.terminal.interrupts import asks_for_json

QUIET, NORMAL, VERBOSE, DEBUG = -1, 0, 1, 2


@dataclass
class Reporter:
    """The user's output options, and the messages so far."""

    is_json: bool = False
    verbosity: int = NORMAL
    shows_tracebacks: bool = False
    command: str = ""
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    said_status: int | None = None
    """The exit status that the document of `--json` says, once that is printed."""

    @classmethod
    def for_arguments(cls, arguments: Sequence[str]) -> "Reporter":
        """Return a reporter that knows what matters before the command line is parsed.

        Mistakes in the command line are said in the form that was asked for, too.
        """
        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        return cls(is_json=asks_for_json([*arguments]), shows_tracebacks="--debug" in options)

    @property
    def shows_progress(self) -> bool:
        """Return whether somebody sees a line that changes."""
        return self.verbosity == NORMAL and not self.is_json and sys.stderr.isatty()

    def tell(self, text: str) -> None:
        """Print a line of text that is no result."""
        if self.verbosity > QUIET and not self.is_json:
            print(text, file=sys.stderr, flush=True)

    def document(self, result: Mapping[str, object] | None, status: int) -> str:
        """Return the document of `--json` for a command that has ended."""
        return document(__version__, self.command, result, status, self.diagnostics)

    def print_document(self, result: Mapping[str, object] | None, status: int) -> None:
        """Print the single document of `--json`."""
        print(self.document(result, status), end="", flush=True)
        self.said_status = status

    def show(self, diagnostic: Diagnostic) -> None:
        """Say a diagnostic as errors are said, and keep it for `--json`."""
        self.diagnostics.append(diagnostic)
        place = "braid" if diagnostic.location is None else str(diagnostic.location)
        hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
        self.tell(f"{place}: {diagnostic.severity}: {diagnostic.message}{hint}")


_current: ContextVar[Reporter | None] = ContextVar("braid_reporter", default=None)


def reporter() -> Reporter:
    """Return the reporter of the command that runs."""
    return _current.get() or Reporter()


def give(answer: Answer) -> int:
    """Print what a command has found; returns the exit status.

    Raises:
        BraidError: that of the answer, for people; it is part of the document of `--json`.

    """
    to = reporter()
    status = 1 if answer.error is not None else answer.status
    if to.is_json:
        if answer.error is not None:
            to.diagnostics.append(Diagnostic.from_error(answer.error))
        to.print_document(answer.data, status)
        return status
    answer.show()
    if answer.error is not None:
        sys.stdout.flush()
        raise answer.error
    return status


@contextmanager
def reporting(to: Reporter) -> Generator[None]:
    """Let the commands of the block talk by this reporter."""
    token = _current.set(to)
    try:
        with handle_diagnostics(to.show):
            yield
    finally:
        _current.reset(token)


@contextmanager
def explaining_verbosely() -> Generator[None]:
    """Print log messages and decisions of the block on standard error, if the user wants that."""
    to = reporter()
    if to.verbosity < VERBOSE:
        yield
        return
    from braid.analysis.diagnostics.remarks import passing_on_remarks
    from braid.support.progress import telling_progress
    from braid.tools.terminal.phases import Phases

    with ExitStack() as stack:
        stack.enter_context(_logging(logs.DEBUG if to.verbosity >= DEBUG else logs.INFO))
        stack.enter_context(telling_progress(Phases(log, every_step=to.verbosity >= DEBUG).on))
        remarks = stack.enter_context(passing_on_remarks())
        try:
            yield
        finally:
            for remark in remarks:
                log(f"{remark.pass_name}: {remark.message}")


def log(text: str) -> None:
    """Write a line of the explanations of `-v`, also next to the document of `--json`."""
    print(f"braid: {text}", file=sys.stderr, flush=True)


@contextmanager
def _logging(level: int) -> Generator[None]:
    """Write what is logged under the name `braid` to standard error."""
    import logging

    logger, handler = logging.getLogger(logs.NAME), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("braid: %(message)s"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
