"""Caches on disk: their location, and entries that contain their key and a digest.

A file is a magic number, the length of the key, that of the payload, a SHA-256 of all the rest, the
key and the payload. A truncated, changed or misplaced entry is detected when the file is read. The
digest guards against accidents, not against an enemy: entries are in directories that only the user
can write to (`private_files`), and what others may have written counts as damaged.
"""

import hashlib
import os
import shutil
import struct
from contextlib import suppress
from pathlib import Path

import platformdirs

from braid.support.atomic_file import atomic_file
from braid.support.diagnostics import Diagnostic, emit
from braid.support.errors import BraidError
from braid.support.input_files import NotRegularError, open_regular, reason
from braid.support.private_files import (
    check_private_directories,
    check_private_directory,
    foreign_reason,
    private_directory,
)

OBJECTS = "compiled"
"""The directory of what was compiled."""
RECORDS = "records-1.sqlite"
"""The file of measurements; the number is that of its schema."""

_warned: set[tuple[str, Path]] = set()


def cache_directory() -> Path:
    """Return `$BRAID_CACHE_DIR`, or braid's part of the user's cache directory."""
    return Path(os.environ.get("BRAID_CACHE_DIR") or platformdirs.user_cache_dir("braid"))


def own_cache_directory() -> Path:
    """Return the directory of the cache, to which nobody else can write.

    Raises BraidError where that cannot be made so, or it belongs to another user.
    """
    directory = cache_directory()
    check_private_directory(directory)
    return directory


def own_objects_directory() -> Path:
    """Return the directory of compiled code; other users can write neither to it nor to the cache.

    Raises BraidError as `own_cache_directory`.
    """
    directory = cache_directory()
    check_private_directories(directory, directory / OBJECTS)
    return directory / OBJECTS


def warn_of_damage(message: str) -> None:
    """Warn of something damaged in the cache, once for each cache and process."""
    hint = (
        "'braid cache verify' lists all that is damaged; the machine may have stopped while it was "
        "written, or the disk be failing"
    )
    _warn_once("damaged", message, hint)


def warn_of_unusable(error: OSError | BraidError) -> None:
    """Warn, once for each cache and process, that nothing can be kept: only time is lost by it."""
    hint = "set BRAID_CACHE_DIR to a directory of your own; until then all is compiled each time"
    _warn_once("unusable", f"the cache '{cache_directory()}' cannot be used: {_why(error)}", hint)


def _warn_once(what: str, message: str, hint: str) -> None:
    key = (what, cache_directory())
    if key not in _warned:
        _warned.add(key)
        emit(Diagnostic("warning", message, hint=hint))


def _why(error: OSError | BraidError) -> str:
    return error.message if isinstance(error, BraidError) else reason(error)


def unusable_reason() -> str | None:
    """Return why nothing can be kept in the cache, None where it can; a file is written to find it.

    Directories that are made for that are removed again.
    """
    directory = cache_directory() / OBJECTS
    from tempfile import TemporaryFile  # slow, and rarely needed

    missing = [each for each in (directory, *directory.parents) if not os.path.lexists(each)]
    try:
        private_directory(directory)
        with TemporaryFile(dir=directory) as file:
            file.write(b"\0")
    except (OSError, BraidError) as error:
        return _why(error)
    finally:
        for each in missing:
            with suppress(OSError):  # another process has put something there
                each.rmdir()
    return None


SUFFIX = ".entry"
_MAGIC = b"braidce1"
_HEADER = struct.Struct("<8sIQ32s")


class DamagedEntryError(Exception):
    """The file is not the expected entry; the message says how it differs."""


def read_entry(path: Path, key: str) -> bytes:
    """Return the payload of the entry at `path`, which must have the key `key`.

    Raises:
        FileNotFoundError: there is no entry.
        OSError: it cannot be read.
        DamagedEntryError: it is damaged, the entry of another key, or no regular file.

    """
    if (why := foreign_reason(path)) is not None:
        raise DamagedEntryError(why)
    try:
        with open_regular(path) as file:
            header = file.read(_HEADER.size)
            _check_size(header, os.fstat(file.fileno()).st_size)
            found, payload = unpack_entry(header + file.read())
    except NotRegularError as error:
        raise DamagedEntryError(error.strerror) from error
    except (MemoryError, OverflowError) as error:  # a file with holes may have any size
        raise DamagedEntryError("it is larger than the memory") from error
    if found != key:
        raise DamagedEntryError(f"it is the entry of '{found[:80]}'")
    return payload


def write_entry(path: Path, key: str, payload: bytes) -> None:
    """Keep `payload` under `key`; the file appears whole, or the file at `path` does not change.

    No write waits for the disk: the digest detects entries that a crash left incomplete.

    Raises:
        OSError: the directory cannot be made, or what is not a file stays in the way.
        BraidError: the file cannot be written, or others may write to its directory.

    """
    private_directory(path.parent)
    if path.is_symlink() or (path.exists() and not _is_readable_file(path)):
        # Else the entry would go to where the link or the pipe leads, or be unreadable as well.
        remove(path)
    with atomic_file(path, durable=False, private=True) as file:
        file.write(pack_entry(key, payload))


def pack_entry(key: str, payload: bytes) -> bytes:
    """Return the bytes of an entry."""
    name = key.encode()
    digest = _digest(name, payload)
    return _HEADER.pack(_MAGIC, len(name), len(payload), digest) + name + payload


def unpack_entry(data: bytes) -> tuple[str, bytes]:
    """Return the key and payload of the entry in `data`. Raises DamagedEntryError if it is no valid
    entry.
    """
    key_bytes, digest = _check_size(data, len(data))
    end = _HEADER.size + key_bytes
    name, payload = data[_HEADER.size : end], data[end:]
    if _digest(name, payload) != digest:
        raise DamagedEntryError("its bytes do not match its digest")
    return name.decode(), payload


def _check_size(data: bytes, size: int) -> tuple[int, bytes]:
    """Return the length of the key and the digest that the header of an entry of `size`
    bytes says.
    """
    if len(data) < _HEADER.size:
        raise DamagedEntryError(f"it has {size} bytes, fewer than a header")
    magic, key_bytes, payload_bytes, digest = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise DamagedEntryError("it does not begin as an entry does")
    expected = _HEADER.size + key_bytes + payload_bytes
    if size != expected:
        raise DamagedEntryError(f"it has {size} bytes, expected {expected}")
    return key_bytes, digest


def _is_readable_file(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)


def remove(path: Path) -> None:
    """Remove the file, link or directory at `path`. Raises OSError where that cannot be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _digest(name: bytes, payload: bytes) -> bytes:
    digest = hashlib.sha256(_MAGIC + struct.pack("<IQ", len(name), len(payload)))
    digest.update(name)
    digest.update(payload)
    return digest.digest()
