"""Standard output: errors are reported, unless its reader has closed it early.

A process may begin without any of its three standard files. The next files that it opens would then
get these numbers, and output of libraries and compilers would be written into them.
"""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import FileIO, TextIOWrapper

from braid.support.errors import BraidError

_REASONS = (errno.ENOSPC, errno.EDQUOT, errno.EBADF)


@contextmanager
def checked_output() -> Generator[None]:
    """Hold the places of missing standard files, and write out what the block prints.

    Raises:
        BraidError: there is no space for it, or it is closed.
        BrokenPipeError: the reader has gone away, as `head` does.

    """
    _hold_places()
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        raise
    except OSError as error:
        if error.errno not in _REASONS or error.filename is not None:
            raise
        _drop_output()
        raise BraidError(f"cannot write to standard output: {error.strerror}") from error


def _hold_places() -> None:
    """Open what is closed of the standard files: empty for readers, and an error for writers."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # gets the lowest number that is free, this one
    # Python sets streams to None that were closed when it began.
    sys.stdin = sys.stdin or TextIOWrapper(FileIO(0, closefd=False))
    sys.stdout = sys.stdout or TextIOWrapper(FileIO(1, "w", closefd=False))
    sys.stderr = sys.stderr or TextIOWrapper(FileIO(os.devnull, "w"))


def _drop_output() -> None:
    """Throw away what is still to be written: Python would complain of it at its exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    if null != sys.stdout.fileno():  # which it gets where standard output was closed
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
