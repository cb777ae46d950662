"""Files that appear whole or not at all."""

import contextlib
import errno
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO

from braid.support.errors import BraidError

_SECONDS_FOR_READER = 1.0


@contextlib.contextmanager
def atomic_file(
    path: str | os.PathLike[str], *, durable: bool = True
) -> Generator[IO[bytes], None, None]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, which is renamed at the end; on any
    error it is removed and what was at `path` stays as it was. A machine that stops leaves the one
    file or the other, whole: the bytes, then the name, are on the disk before this returns. Links
    are followed. Without `durable` nothing waits for the disk, and a machine that stops may leave
    anything. A path that is there but is not a regular file (a pipe, `/dev/stdout`) is written
    directly.

    Raises:
        BraidError: the file cannot be created or written, as on a full disk, or is a pipe that
            nobody reads.

    """
    with _explained(path):
        target = resolved(path)
        opened = _open_directly(target) if _is_special(target) else _replace(target, durable)
        with opened as file:
            yield file


def resolved(path: str | os.PathLike[str]) -> Path:
    """The path without links.

    Raises:
        OSError: links lead in a circle, or no file can have such a name.

    """
    try:
        found = Path(path).resolve()
    except RuntimeError as error:  # until Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
    except ValueError as error:
        raise OSError(errno.EINVAL, f"no file has such a name ({error})") from error
    if found.is_symlink():  # from Python 3.13 on
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return found


def check_writable(path: str | os.PathLike[str]) -> None:
    """Find, before there is anything to write, what would keep `atomic_file` from beginning.

    Raises:
        BraidError: there is no such directory, or no permission, or `path` is a directory.

    """
    with _explained(path):
        target = resolved(path)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not _is_special(target):  # a pipe's reader may still come
            _temporary_beside(target).unlink()


@contextlib.contextmanager
def _explained(path: str | os.PathLike[str]) -> Generator[None, None, None]:
    """Errors of the system as one that says which file cannot be written."""
    try:
        yield
    except OSError as error:
        raise BraidError(
            f"cannot write '{path}': {error.strerror or error}",
            hint="choose another place with room and write permission",
        ) from error


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _opened_for_writing(path: Path) -> int:
    """A descriptor; a pipe's reader may come a little later, but is not waited for without end."""
    deadline = time.monotonic() + _SECONDS_FOR_READER
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if not path.is_fifo():
                raise OSError(errno.ENXIO, "it is a socket, expected a file") from error
            if time.monotonic() > deadline:
                raise OSError(errno.ENXIO, "it is a pipe that nobody reads") from error
        time.sleep(0.01)


@contextlib.contextmanager
def _open_directly(path: Path) -> Generator[IO[bytes], None, None]:
    descriptor = _opened_for_writing(path)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as file:
        yield file


@contextlib.contextmanager
def _replace(path: Path, durable: bool) -> Generator[IO[bytes], None, None]:
    temporary = _temporary_beside(path)
    try:
        with temporary.open("w+b") as file:  # may be mapped
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.chmod(_mode_for(path))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Bring the names in a directory to the disk, where its file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _temporary_beside(path: Path) -> Path:
    """A new file in the directory of `path`."""
    import tempfile  # models that are loaded write nothing

    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    return Path(name)


def _mode_for(path: Path) -> int:
    """Return the permissions that opening `path` for writing would have left it with."""
    if path.exists():
        return path.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
