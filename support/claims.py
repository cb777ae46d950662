"""Claims on work that several processes could do: who dies gives back what it has claimed."""

import fcntl
import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from braid.support.errors import BraidError
from braid.support.private_files import open_private, private_directory

_BYTES = 1 << 62
"""Keys are bytes of a file that is empty, and locked far beyond its end."""


class Claims:
    """The claims of this process in a file that all processes look at; opened by `claims`."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    @contextmanager
    def claim(self, key: str) -> Generator[bool]:
        """Yield whether this process may work on this key for as long as the block runs.

        Where the file system has no locks, everybody has it.
        """
        place = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little") % _BYTES
        if self._descriptor is None:
            yield True
            return
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except BlockingIOError:
            yield False
            return
        except OSError:
            yield True
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, place)


@contextmanager
def claims(path: Path) -> Generator[Claims]:
    """Return the claims in the file at `path`; where none can be written, this process claims
    everything.
    """
    try:
        private_directory(path.parent)
        descriptor = open_private(path)
    except (OSError, BraidError):
        yield Claims(None)
        return
    try:
        yield Claims(descriptor)
    finally:
        os.close(descriptor)
