"""Private files and directories of the user: caches, records, and the data of the service.

Code is loaded from them, so no other user may write to them: directories have mode 0700 and files
0600, independent of the umask, which is never changed. Files of the superuser count as the
user's own.
"""

import os
import stat
from pathlib import Path

from braid.support.errors import BraidError

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
OTHERS_BITS = 0o077
"""The umask of processes all of whose files are private."""
_WRITE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_directory(path: Path) -> Path:
    """Create a private directory and its missing parents, check it, and return `path`.

    Raises:
        OSError: it cannot be created.
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
        directory.chmod(DIRECTORY_MODE)  # the umask may have cleared bits of the user
    if not path.is_dir():
        path.mkdir()  # raises FileExistsError, or the error of the parent
    check_private_directory(path)
    return path


def check_private_directory(path: Path) -> None:
    """Check that nobody else can change the files in a directory, if it exists.

    A directory of this user that others may write to gets mode 0700. A shared one with the sticky
    bit, such as `/tmp`, is left unchanged: other users cannot replace this user's files there, and
    their files are recognized by their owner.

    Raises:
        BraidError: it belongs to another user, or cannot be made private.

    """
    try:
        status = path.stat()
    except OSError:
        return  # its use raises the error
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
        why = f"is writable by others, and its mode cannot be changed: {error.strerror}"
        raise _refused(path, why) from error
    if status.st_mode & _WRITE_BY_OTHERS:
        raise _refused(path, "is writable by others, and its file system does not store modes")


def check_private_directories(outer: Path, inner: Path) -> None:
    """Check `inner` and its parents up to `outer`, each as `check_private_directory` does."""
    check_private_directory(outer)
    at = outer
    for part in inner.relative_to(outer).parts:
        at /= part
        check_private_directory(at)


def foreign_reason(path: Path) -> str | None:
    """Return why someone else may have written the file at `path`, None if nobody can have.

    A symbolic link counts as written by others: its target may change, and braid makes none here.
    Raises OSError if there is no file.
    """
    status = path.lstat()
    if not _is_own(status):
        return f"it belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if stat.S_ISREG(status.st_mode) and status.st_mode & _WRITE_BY_OTHERS:
        return "others may write to it"
    return None


def open_private(path: Path, flags: int = os.O_RDWR) -> int:
    """Open a file, which is created with mode 0600 if missing, and return its descriptor.

    Raises OSError if it cannot be opened, and for a symbolic link, which in a shared directory may
    lead to any file.
    """
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def make_private_file(path: Path) -> None:
    """Create an empty file of mode 0600 if there is none. Raises OSError."""
    os.close(open_private(path, os.O_RDONLY))


def tighten_file(path: Path) -> None:
    """Set mode 0600 on a file of this user that others may write to.

    Raises:
        OSError: it cannot be inspected.
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
            raise _refused(path, f"is writable by others: {error.strerror}") from error


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _refused(path: Path, why: str) -> BraidError:
    return BraidError(
        f"'{path}' {why}: others could replace the files that braid keeps there",
        hint="set BRAID_CACHE_DIR to a directory of your own, or make this one yours alone "
        f"(chown and chmod go-w '{path}')",
    )
