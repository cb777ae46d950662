"""What ends a command though nothing in it is wrong: too deep an input, a small system."""

import errno

from braid.support.errors import BraidError

_LIMITS = {
    errno.EMFILE: "let the process have more open files (ulimit -n)",
    errno.ENFILE: "the system has too many open files; end other programs",
    errno.EFBIG: "let the process write larger files (ulimit -f)",
    errno.ENOSPC: "make room, or set TMPDIR and BRAID_CACHE_DIR to directories with room",
    errno.EDQUOT: "make room, or set TMPDIR and BRAID_CACHE_DIR to directories with room",
    errno.EROFS: "set TMPDIR and BRAID_CACHE_DIR to directories that may be written to",
    errno.EAGAIN: "let the user have more processes (ulimit -u), or ask for fewer (--jobs)",
    errno.ENOMEM: "use a machine with more memory, or fewer processes (--jobs)",
    errno.EIO: "the system cannot read or write a file; look at its disk",
}


def exhausted(error: BaseException) -> BraidError | None:
    """The diagnostic for a stack, a memory or a limit of the system that was not enough, if it is.

    Readers refuse what is nested too deeply, and writers name their files, so that this is the
    last resort.
    """
    if isinstance(error, OSError) and error.errno in _LIMITS:
        name = f": '{error.filename}'" if error.filename else ""
        return BraidError(f"the system refuses: {error.strerror}{name}", hint=_LIMITS[error.errno])
    if isinstance(error, ImportError) and "failed to map segment" in str(error):
        return BraidError(f"out of memory: {error}", hint=_LIMITS[errno.ENOMEM])
    if isinstance(error, RecursionError):
        return BraidError(
            "the model is nested too deeply",
            hint="write inner regions as functions, and long expressions in parts",
        )
    if not isinstance(error, MemoryError):
        return exhausted(error.__cause__) if error.__cause__ is not None else None
    return BraidError(
        f"out of memory: {error}" if str(error) else "out of memory",
        hint="give smaller shapes (--shape), or use a machine with more memory",
    )
