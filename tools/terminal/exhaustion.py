"""Handle what ends a command though nothing in it is wrong: too deep an input, a small system."""

import errno
import resource

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


_OF_MEMORY = (
    *("failed to map segment", "cannot allocate", "bad_alloc", "out of memory"),
    *("can't start new thread", "unable to allocate", "memory allocation"),
)
"""The messages of the loader, system, C++, LLVM, Python and numpy where memory is not enough."""


def _is_of_memory(text: str) -> bool:
    return any(each in text.lower() for each in _OF_MEMORY)


def _is_memory_limited() -> bool:
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def exhausted(error: BaseException) -> BraidError | None:
    """Return the diagnostic where a stack, memory or a limit of the system was exhausted.

    The result is None for any other error. This is the last resort: readers refuse what is nested
    too deeply, and writers name their files.
    """
    if isinstance(error, OSError) and error.errno in _LIMITS:
        name = f": '{error.filename}'" if error.filename else ""
        return BraidError(f"the system refuses: {error.strerror}{name}", hint=_LIMITS[error.errno])
    if isinstance(error, BraidError):  # such as a compiler's process, which has the limit
        says_so = error.message.startswith("out of memory")
        if says_so or not (_is_memory_limited() and _is_of_memory(error.message)):
            return None
        return BraidError(f"out of memory: {error.message}", hint=_LIMITS[errno.ENOMEM])
    if isinstance(error, ImportError | OSError) and _is_of_memory(str(error)):
        return BraidError(f"out of memory: {error}", hint=_LIMITS[errno.ENOMEM])
    if isinstance(error, SystemError) and _is_memory_limited():
        # Python's own code has found no memory, and none to say so.
        return BraidError("out of memory", hint=_LIMITS[errno.ENOMEM])
    if isinstance(error, RecursionError):
        return BraidError(
            "the model is nested too deeply",
            hint="write inner regions as functions, and long expressions in parts",
        )
    from braid.support.worker_process import WorkerEndedError  # slow, and rarely needed

    if isinstance(error, RuntimeError | WorkerEndedError) and _is_of_memory(str(error)):
        return BraidError(f"out of memory: {error}", hint=_LIMITS[errno.ENOMEM])
    if not isinstance(error, MemoryError):
        # A package may say that a library is not found where it could not be mapped.
        before = error.__cause__ or error.__context__
        return exhausted(before) if before is not None else None
    return BraidError(
        f"out of memory: {error}" if str(error) else "out of memory",
        hint="give smaller shapes (--shape), or use a machine with more memory",
    )
