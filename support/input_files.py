"""Reading files that somebody else wrote: only regular ones, and nothing nested without end.

To open a pipe waits for its writer, and a device may never end: where braid expects a file, those
are refused before anything is read. Only `/dev/null` is taken, as the empty file that it stands
for. Whatever a file holds, reading it ends with a value or with an exception that the caller turns
into a diagnostic.
"""

import errno
import json
import mmap
import os
import stat
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import IO, Any

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


_NULL_DEVICE = os.makedev(1, 3)
"""The number of `/dev/null`, which is the same on every Linux."""


class NotRegularError(OSError):
    """A directory, a pipe, a device or a socket where a file is expected."""


def reason(error: Exception) -> str:
    """Return why a file cannot be read, without the number and the name that the system's errors
    carry.
    """
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class OutsideError(ValueError):
    """Raised if a model names a file that is outside of the model's directory."""


def path_beside(model: Path, written: str) -> Path:
    """Return the path of a file that a model at the path `model` names, relative to it.

    The file is in the directory of the model as both are named, or as both lie: hubs keep models
    and their data as links into one directory.

    Raises:
        OutsideError: it is not in the model's directory, or a link leads out of that.

    """
    pure = PurePath(written)
    if not written or pure.is_absolute() or ".." in pure.parts or "\0" in written:
        raise OutsideError("is outside the model's directory")
    path = model.parent / written
    real = Path(os.path.realpath(path))
    homes = (model.parent, Path(os.path.realpath(model)).parent)
    if not any(real.is_relative_to(os.path.realpath(home)) for home in homes):
        raise OutsideError("is a link out of the model's directory")
    return path


class NestedTooDeeplyError(ValueError):
    """The text has more brackets within each other than can be read."""


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file, or a link to one, for reading; `/dev/null` is an empty file.

    Raises:
        OSError: the file is missing, or cannot be read.
        NotRegularError: `path` is a directory, a pipe, a device or a socket; `strerror` says which.

    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise NotRegularError(errno.EINVAL, "it is a socket, expected a file", str(path)) from (
                error
            )
        raise
    except ValueError as error:  # a zero byte in the name
        raise OSError(errno.EINVAL, f"no file has such a name ({error})", str(path)) from error
    try:
        status = os.fstat(descriptor)
        mode = status.st_mode
        if not stat.S_ISREG(mode) and not _is_null(status):
            kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
            raise NotRegularError(errno.EINVAL, f"it is {kind}, expected a file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _is_null(status: os.stat_result) -> bool:
    """Return whether a file is the device that holds nothing, and never lets a reader wait."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == _NULL_DEVICE


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return the contents of a regular file; raises as `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a regular file in UTF-8, without the byte order mark that some editors
    write.

    Raises as `open_regular`, and UnicodeDecodeError.
    """
    return read_regular(path).decode("utf-8-sig")


def map_regular(path: str | os.PathLike[str]) -> mmap.mmap | bytes:
    """Return a regular file mapped into memory, for reading; an empty one is empty bytes.

    Raises as `open_regular`.
    """
    with open_regular(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def parse_json(text: str | bytes, *, unique: bool = False) -> Any:
    """Return the value that a JSON text describes; `unique` refuses objects that have a key twice.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.

    """
    try:
        return json.loads(text, object_pairs_hook=_unique if unique else None)
    except RecursionError as error:
        raise NestedTooDeeplyError("the JSON is nested too deeply") from error


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the JSON has the key '{twice}' twice in one object")
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        OSError: as `open_regular`.
        ValueError: it is not TOML in UTF-8, or is nested too deeply.

    """
    try:
        return tomllib.loads(read_text(path))
    except RecursionError as error:
        raise NestedTooDeeplyError("the TOML is nested too deeply") from error
