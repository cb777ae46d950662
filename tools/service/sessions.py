"""Processes in new sessions, which end with all processes that they have started."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_SESSION_FIELD = 3
"""A field of /proc/PID/stat, counted after the name, which may hold blanks and brackets."""


def end_session(session: int, seconds: float = 0.5) -> bool:
    """Kill the processes of a session, also in other process groups; return whether all are gone.

    Processes that are started meanwhile are found as well, within `seconds`.
    """
    end = time.monotonic() + seconds
    while found := list(members(session)):
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def members(session: int) -> Iterator[int]:
    """Yield the processes of a session that still run."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[_SESSION_FIELD]) == session and fields[0] not in "ZX":
                    yield int(entry.name)
