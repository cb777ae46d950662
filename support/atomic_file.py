"""Files that appear whole or not at all."""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO

from braid.support.errors import BraidError
from braid.support.private_files import FILE_MODE

_SECONDS_FOR_READER = 1.0


@contextlib.contextmanager
def atomic_file(
    path: str | os.PathLike[str], *, durable: bool = True, private: bool = False
) -> Generator[IO[bytes], None, None]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, which is renamed at the end; on any
    error it is removed, and the file at `path` does not change. After a crash of the machine there
    is the old file or the new one, complete: the bytes, then the name, are on the disk before this
    returns. Links are followed. Without `durable` nothing waits for the disk, and a machine that
    stops may leave anything. The file keeps the mode of the file that it replaces, or gets the
    default mode; with `private` it has mode 0600 whatever the umask is. A path that is there but is
    not a regular file (a pipe, `/dev/stdout`) is written directly.

    Raises:
        BraidError: the file cannot be created or written, as on a full disk, or is a pipe that
            nobody reads.

    """
    with _explained(path):
        target = resolved(path)
        special = _is_special(target)
        opened = _open_directly(target) if special else _replace(target, durable, private)
        with opened as file:
            yield file


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return the path without links.

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
    """Find, before there is anything to write, reasons why `atomic_file` could not begin.

    Raises:
        BraidError: there is no such directory, or no permission, or `path` is a directory.

    """
    with _explained(path):
        target = resolved(path)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not _is_special(target):  # a pipe's reader may still come
            descriptor, temporary = _temporary_beside(target)
            os.close(descriptor)
            temporary.unlink()


def _way_out(path: str | os.PathLike[str], error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return f"make the directory '{Path(path).parent}' first"
    if error.errno == errno.EISDIR:
        return "name a file in it"
    return "choose another place with free space and write permission"


@contextlib.contextmanager
def _explained(path: str | os.PathLike[str]) -> Generator[None, None, None]:
    """Turn errors of the system into a diagnostic with the path of the file."""
    try:
        yield
    except OSError as error:
        raise BraidError(
            f"cannot write '{path}': {error.strerror or error}",
            hint=_way_out(path, error),
        ) from error


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _opened_for_writing(path: Path) -> int:
    """Return a descriptor; a pipe's reader may come a little later, but is not waited for without
    end.
    """
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
def _replace(path: Path, durable: bool, private: bool) -> Generator[IO[bytes], None, None]:
    descriptor, temporary = _temporary_beside(path, private)
    try:
        with os.fdopen(descriptor, "w+b") as file:  # may be mapped
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
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


def _temporary_beside(path: Path, private: bool = False) -> tuple[int, Path]:
    """Return a new file in the directory of `path`, open, with the mode that `path` will have."""
    kept = FILE_MODE if private else stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        try:
            # Without a mode to keep, the umask decides; with one, nobody may read the file before
            # it is set.
            descriptor = os.open(temporary, flags, 0o666 if kept is None else FILE_MODE)
        except FileExistsError:
            continue
        try:
            if kept is not None:
                os.fchmod(descriptor, kept)
        except OSError:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
            raise
        return descriptor, temporary
