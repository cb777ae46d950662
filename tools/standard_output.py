"""Standard output: what is wrong with it is said, unless its reader has only seen enough."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

from braid.support.errors import BraidError

_REASONS = (errno.ENOSPC, errno.EDQUOT, errno.EBADF)


@contextmanager
def checked_output() -> Generator[None]:
    """Write out what the block prints.

    Raises:
        BraidError: there is no space for it, or it is closed.
        BrokenPipeError: the reader has gone away, as `head` does.

    """
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


def _drop_output() -> None:
    """Throw away what is still to be written: Python would complain of it at its exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    if null != sys.stdout.fileno():  # which it gets where standard output was closed
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
