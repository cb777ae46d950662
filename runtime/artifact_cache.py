"""Artifacts that are kept from earlier compilations, up to a size; the oldest go first."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from braid.runtime.artifact import Artifact, read_artifact
from braid.support.byte_sizes import parse_size
from braid.support.cache_files import (
    own_objects_directory,
    remove,
    warn_of_damage,
    warn_of_unusable,
)
from braid.support.errors import BraidError
from braid.support.input_files import reason
from braid.support.private_files import (
    check_private_directories,
    foreign_reason,
    make_private_file,
    private_directory,
)

LIMIT = "BRAID_CACHE_LIMIT"
"""The environment variable for the limit of the artifacts' bytes."""
_DEFAULT_LIMIT = 4 * 2**30
_SUFFIX = ".braid"
_ABANDONED_SECONDS = 3600.0
"""The age from which on the writer of an unfinished file counts as killed."""


@dataclass(frozen=True)
class ArtifactCache:
    """A directory of artifacts by keys, shared by any number of processes.

    Artifacts appear whole or not at all, carry digests and, after their end, their key, and are
    never changed. An artifact that is damaged, has another key, or may have been written by other
    users is removed and counts as missing. The least recently used ones are removed if all together
    exceed `limit` bytes; processes that have one mapped keep it. So are files that a killed process
    left incomplete.
    """

    directory: Path
    limit: int = _DEFAULT_LIMIT

    def get(self, key: str) -> Artifact | None:
        """Return the artifact under `key` if all of its digests are correct, else None.

        Raises BraidError if its directory belongs to another user.
        """
        path = self._path(key)
        check_private_directories(self.directory, path.parent)
        try:
            os.utime(path)  # it is the one used last
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # others may read it, and no more
            if not os.access(path, os.R_OK):
                return None
        try:
            artifact = self.opened(key)
            artifact.check()
        except BraidError as error:
            if os.path.lexists(path):
                what = f"artifact '{path}' of the cache is damaged, and made again"
                warn_of_damage(f"{what}: {error.message}")
                with suppress(OSError):
                    remove(path)
            return None
        return artifact

    def opened(self, key: str) -> Artifact:
        """Open the artifact under `key`, without that key.

        Raises BraidError if there is no valid artifact, or it has another key.
        """
        path, mark = self._path(key), _mark(key)
        try:
            if (why := foreign_reason(path)) is not None:
                raise BraidError(why)
        except OSError as error:
            raise BraidError(reason(error)) from error
        artifact = read_artifact(path)
        if artifact.data[-len(mark) :].tobytes() != mark:
            raise BraidError("it is not the artifact of its key")
        return replace(artifact, data=artifact.data[: -len(mark)])

    def put(self, key: str, write: Callable[[Path], object]) -> bool:
        """Store what `write` writes under `key`, then remove old artifacts beyond the limit.

        Returns whether it is kept: not if it is larger than the limit, or cannot be written, which
        is reported by one warning.
        """
        path, is_kept = self._path(key), False
        half = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        try:
            # Weights may be of a file that only its owner may read.
            private_directory(path.parent)
            make_private_file(half)  # whose mode stays
        except (OSError, BraidError) as error:
            warn_of_unusable(error)
            return False
        try:
            write(half)
            with half.open("ab") as file:
                file.write(_mark(key))
            is_kept = half.stat().st_size <= self.limit
            if is_kept:
                if path.is_dir() and not path.is_symlink():
                    remove(path)
                half.replace(path)
        except OSError as error:
            is_kept = False
            warn_of_unusable(error)
        except BraidError:  # such as that there is no compiler to link it
            is_kept = False
        finally:
            with suppress(OSError):
                half.unlink(missing_ok=True)
        with suppress(OSError):
            self._trim()
        return is_kept

    def files(self) -> Iterator[Path]:
        """Return the paths in the directory of artifacts, sorted by name."""
        return iter(sorted(self.directory.glob(f"??/*{_SUFFIX}")))

    def damage(self, path: Path) -> str | None:
        """Return the error in the artifact at `path`; None if it is valid or missing."""
        if not os.path.lexists(path):
            return None
        try:
            check_private_directories(self.directory, path.parent)
            self.opened(f"{path.parent.name}{path.name.removesuffix(_SUFFIX)}").check()
        except BraidError as error:
            return error.message if os.path.lexists(path) else None
        return None

    def _trim(self) -> None:
        for half in self.directory.glob("??/.*"):
            with suppress(OSError):
                if time.time() - half.lstat().st_mtime > _ABANDONED_SECONDS:
                    remove(half)
        sizes: list[tuple[int, int, Path]] = []
        for path in self.files():
            with suppress(OSError):
                status = path.lstat()
                sizes.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in sizes)
        for _, size, path in sorted(sizes):
            if total <= self.limit:
                return
            with suppress(OSError):
                remove(path)
            total -= size

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key[2:]}{_SUFFIX}"


def _mark(key: str) -> bytes:
    """Return the trailer with `key` that follows an artifact, which readers ignore."""
    return b"braidkey" + hashlib.sha256(key.encode()).digest()


def default_artifacts() -> ArtifactCache:
    """Return the artifact cache in `$BRAID_CACHE_DIR`, or in the user's cache directory.

    Raises BraidError if `$BRAID_CACHE_LIMIT` is no size, or other users can write to the directory.
    """
    text = os.environ.get(LIMIT)
    try:
        limit = parse_size(text) if text else _DEFAULT_LIMIT
    except ValueError as error:
        raise BraidError(f"{LIMIT} {error}", hint="such as 4GiB; 0 keeps nothing") from error
    return ArtifactCache(own_objects_directory() / "models", limit)
