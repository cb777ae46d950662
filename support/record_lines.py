"""The file of measurements: one JSON object a line, each with a digest of itself.

Lines are only appended, under a lock, so that any number of processes may write at once. A line
that was changed or cut off is never used, and is taken out when it is found.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import stat
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, cast

from braid.support.atomic_file import atomic_file
from braid.support.errors import BraidError
from braid.support.input_files import NotRegularError, parse_json, read_regular


def encode_line(key: str, seconds: float, what: str) -> bytes:
    """A record as a line; `what` says to people what was measured."""
    fields = {"key": key, "seconds": seconds, "what": what, "digest": _digest(key, seconds, what)}
    return json.dumps(fields).encode() + b"\n"


def decode_line(line: bytes) -> tuple[str, float] | None:
    """Key and seconds of a record, None for a line that is damaged."""
    try:
        entry: object = parse_json(line)
    except ValueError:
        return None
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, Any], entry)
    key, seconds, what = (fields.get(name) for name in ("key", "seconds", "what"))
    if not (isinstance(key, str) and isinstance(seconds, float) and isinstance(what, str)):
        return None
    if not (0 <= seconds < math.inf) or fields.get("digest") != _digest(key, seconds, what):
        return None
    return key, seconds


def read_lines(path: Path) -> list[bytes]:
    """The lines of a file, damaged or not, without empty ones. Raises OSError."""
    return [line for line in read_regular(path).split(b"\n") if line]


def append_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Add whole lines at the end, all or none. Raises OSError where that cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(lines)
    with _locked(path) as descriptor:
        end = os.fstat(descriptor).st_size
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            data = b"\n" + data  # a writer that was stopped left half a line
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise


def drop_damaged(path: Path) -> None:
    """Take damaged lines out, if the file can be written."""
    with contextlib.suppress(OSError, BraidError), _locked(path):
        kept = [line for line in read_lines(path) if decode_line(line) is not None]
        with atomic_file(path) as file:
            file.write(b"".join(line + b"\n" for line in kept))


@contextlib.contextmanager
def _locked(path: Path) -> Generator[int]:
    """The file opened for appending, which nobody else appends to or replaces meanwhile."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o644)
        try:
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            opened, named = os.fstat(descriptor), path.stat()
            if not stat.S_ISREG(opened.st_mode):
                raise NotRegularError(errno.EINVAL, "it is not a file", str(path))
            if (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _digest(key: str, seconds: float, what: str) -> str:
    return hashlib.sha256("\0".join((key, repr(seconds), what)).encode()).hexdigest()
