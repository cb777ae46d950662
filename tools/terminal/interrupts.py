"""Ctrl-C while a tool starts: it ends at once and says nothing, as nothing has begun yet."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""


def _end(*_: object) -> None:
    os._exit(INTERRUPTED)


@contextmanager
def ended_by_interrupts(is_program: bool) -> Generator[None]:
    """Around imports of a program: Ctrl-C ends the process with `INTERRUPTED`.

    Otherwise it would be an exception in any line of any module, some of which lose it. Where it
    does something else than Python has it do, that stays: background jobs ignore it.
    """
    if not is_program or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
