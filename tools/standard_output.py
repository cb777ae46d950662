"""Standard output: what is wrong with it is said, unless its reader has only seen enough."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

from braid.support.errors import BraidError


@contextmanager
def checked_output() -> Generator[None]:
    """Write out what the block prints.

    Raises:
        BraidError: there is no space for it.
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
        if error.errno != errno.ENOSPC:
            raise
        _drop_output()
        raise BraidError(f"cannot write to standard output: {error.strerror}") from error


def _drop_output() -> None:
    """Throw away what is still to be written: Python would complain of it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
