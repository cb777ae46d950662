"""Ctrl-C while a tool cannot handle it: at its start, and after its output."""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager

from braid import __version__

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""

_DOCUMENT = (
    '{"braid": "%s", "command": "", "ok": false, "result": null, "diagnostics": [{"severity": '
    '"error", "message": "interrupted", "hint": null, "file": null, "line": null, "column": null, '
    '"notes": []}]}\n'
)
"""The document of `--json`, as text: no module that writes JSON may be imported when Ctrl-C
comes."""


def asks_for_json(arguments: list[str]) -> bool:
    """Return whether `--json` is one of the options of a command line."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _end(*_: object) -> None:
    if asks_for_json(sys.argv[1:]):
        os.write(1, (_DOCUMENT % __version__).encode())
    os._exit(INTERRUPTED)


def _is_pythons() -> bool:
    """Return whether Ctrl-C has Python's default effect; background jobs ignore it."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


@contextmanager
def ended_by_interrupts(is_program: bool) -> Generator[None]:
    """Let Ctrl-C end the process with `INTERRUPTED` while a program imports its modules.

    Otherwise it would be an exception in any line of any module, some of which lose it. A handler
    other than Python's default is kept.
    """
    if not is_program or not _is_pythons():
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def keep_status(status: int) -> int:
    """Return the status of a program that has said all; Ctrl-C from here on ends it with that.

    Otherwise Python, which is ending by then, would report the signal instead of the status.
    """

    def end(*_: object) -> None:
        os._exit(status)

    if _is_pythons():
        signal.signal(signal.SIGINT, end)
    return status
