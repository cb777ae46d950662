"""Files that appear whole or not at all."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import IO

from braid.support.errors import BraidError


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, which is renamed at the end; on any
    error it is removed and what was at `path` stays as it was. A machine that stops leaves the one
    file or the other, whole: the bytes, then the name, are on the disk before this returns. Links
    are followed. A path that is there but is no regular file (a pipe, `/dev/stdout`) is written
    directly.

    Raises:
        BraidError: the file cannot be created or written, as on a full disk.

    """
    target = Path(path).resolve()
    opened = _open_directly(target) if _is_special(target) else _replace(target)
    with _explained(path), opened as file:
        yield file


def check_writable(path: str | os.PathLike[str]) -> None:
    """Find, before there is anything to write, what would keep `atomic_file` from beginning.

    Raises:
        BraidError: there is no such directory, or no permission, or `path` is a directory.

    """
    target = Path(path).resolve()
    with _explained(path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not _is_special(target):  # to open a pipe would wait for its reader
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


@contextlib.contextmanager
def _open_directly(path: Path) -> Generator[IO[bytes], None, None]:
    with path.open("wb") as file:
        yield file


@contextlib.contextmanager
def _replace(path: Path) -> Generator[IO[bytes], None, None]:
    temporary = _temporary_beside(path)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode_for(path))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
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
