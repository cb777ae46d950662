"""Files that appear whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import IO

from braid.errors import BraidError


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, which is renamed at the end; on any
    error it is removed and what was at `path` stays as it was. Links are followed. A path that is
    there but is no regular file (a pipe, `/dev/stdout`) is written directly.

    Raises:
        BraidError: the file cannot be created or written, as on a full disk.

    """
    target = Path(path).resolve()
    opened = _open_directly(target) if _is_special(target) else _replace(target)
    try:
        with opened as file:
            yield file
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
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode_for(path))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode_for(path: Path) -> int:
    """Return the permissions that opening `path` for writing would have left it with."""
    if path.exists():
        return path.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
