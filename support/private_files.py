"""Files and directories of this user alone: caches, records, and what a service keeps.

What is read back from them is run, so that nobody else may have written it: directories have mode
0700 and files 0600, whatever the umask is, which is never changed. The superuser may do anything
and counts as the user.
"""

import os
import stat
from pathlib import Path

from braid.support.errors import BraidError

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
_WRITE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_directory(path: Path) -> Path:
    """Make a directory, and those around it that are missing, and check it; returns `path`.

    Raises:
        OSError: it cannot be made.
        BraidError: as `check_private_directory`.

    """
    missing: list[Path] = []
    at = path
    while not at.exists() and not at.is_symlink() and at != at.parent:
        missing.append(at)
        at = at.parent
    for directory in reversed(missing):
        try:
            directory.mkdir(DIRECTORY_MODE)
        except FileExistsError:  # another process was faster
            continue
        directory.chmod(DIRECTORY_MODE)  # the umask may have taken more
    if not path.is_dir():
        path.mkdir()  # raises what stands in the way
    check_private_directory(path)
    return path


def check_private_directory(path: Path) -> None:
    """Make sure that nobody else can change what is in a directory, if there is one.

    One of this user that others may write to is given mode 0700. A shared one such as `/tmp` stays
    as it is: nobody replaces what is others' there, and what others have made is told by its owner.

    Raises:
        BraidError: it belongs to another user, or cannot be made private.

    """
    try:
        status = path.stat()
    except OSError:
        return  # whoever uses it says why it cannot be
    if not stat.S_ISDIR(status.st_mode):
        return
    if not _is_own(status):
        raise _refused(path, f"belongs to user {status.st_uid}, and this is user {os.geteuid()}")
    if not status.st_mode & _WRITE_BY_OTHERS or status.st_mode & stat.S_ISVTX:
        return
    try:
        path.chmod(DIRECTORY_MODE)
        status = path.stat()
    except OSError as error:
        why = f"can be written by others, and its mode cannot be changed: {error.strerror}"
        raise _refused(path, why) from error
    if status.st_mode & _WRITE_BY_OTHERS:
        raise _refused(path, "can be written by others, and its file system keeps no modes")


def check_private_directories(outer: Path, inner: Path) -> None:
    """Check `inner` and all directories around it up to `outer`; raises as for one of them."""
    check_private_directory(outer)
    at = outer
    for part in inner.relative_to(outer).parts:
        at /= part
        check_private_directory(at)


def foreign_reason(path: Path) -> str | None:
    """Why somebody else may have written the file at `path`; None where nobody can have.

    Raises OSError where there is none. A link is judged as a link.
    """
    status = path.lstat()
    if not _is_own(status):
        return f"it belongs to user {status.st_uid}"
    if stat.S_ISREG(status.st_mode) and status.st_mode & _WRITE_BY_OTHERS:
        return "others may write to it"
    return None


def open_private(path: Path, flags: int = os.O_RDWR) -> int:
    """Return a descriptor of a file, which is made with mode 0600 where it is missing.

    Raises OSError, also for a link: in a directory that others share it may lead to any file.
    """
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def make_private_file(path: Path) -> None:
    """Make an empty file of mode 0600 where there is none. Raises OSError."""
    os.close(open_private(path, os.O_RDONLY))


def tighten_file(path: Path) -> None:
    """Take from others what they may do with a file of this user that they may write to.

    Raises:
        OSError: it cannot be looked at.
        BraidError: it belongs to another user, or its mode cannot be changed.

    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return  # another process has removed it
    if not _is_own(status):
        raise _refused(path, f"belongs to user {status.st_uid}, and this is user {os.geteuid()}")
    if stat.S_ISREG(status.st_mode) and status.st_mode & _WRITE_BY_OTHERS:
        try:
            path.chmod(FILE_MODE)
        except OSError as error:
            raise _refused(path, f"can be written by others: {error.strerror}") from error


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _refused(path: Path, why: str) -> BraidError:
    return BraidError(
        f"'{path}' {why}: what braid keeps there could be replaced by others",
        hint="set BRAID_CACHE_DIR to a directory of your own, or give this one to yourself alone "
        f"(chown and chmod go-w '{path}')",
    )
