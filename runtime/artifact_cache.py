"""Artifacts that are kept from earlier compilations, up to a size; the oldest go first."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from braid.runtime.artifact import Artifact, read_artifact
from braid.support.byte_sizes import parse_size
from braid.support.cache_files import OBJECTS, cache_directory, remove, warn_of_damage
from braid.support.errors import BraidError

LIMIT = "BRAID_CACHE_LIMIT"
"""The environment variable that says how many bytes of artifacts are kept."""
_DEFAULT_LIMIT = 4 * 2**30
_SUFFIX = ".braid"
_ABANDONED_SECONDS = 3600.0
"""After so long nobody writes to a file any more that is not whole: its process was killed."""


@dataclass(frozen=True)
class ArtifactCache:
    """A directory of artifacts by keys, shared by any number of processes.

    Artifacts appear whole or not at all, carry digests, and are never changed. One that is damaged
    counts as missing: it is removed. Those that were not used for longest are removed where all
    together have more than `limit` bytes; who has one mapped keeps it. So are those that a process
    left half written that was killed.
    """

    directory: Path
    limit: int = _DEFAULT_LIMIT

    def get(self, key: str) -> Artifact | None:
        """The artifact under `key`, all of whose digests hold; None where there is none."""
        path = self._path(key)
        try:
            os.utime(path)  # it is the one used last
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # others may read it, and no more
            if not os.access(path, os.R_OK):
                return None
        try:
            artifact = read_artifact(path)
            artifact.check()
        except BraidError as error:
            if path.exists():
                what = f"artifact '{path}' of the cache is damaged, and made again"
                warn_of_damage(f"{what}: {error.message}")
                with suppress(OSError):
                    remove(path)
            return None
        return artifact

    def put(self, key: str, write: Callable[[Path], object]) -> Path | None:
        """Keep what `write` writes, if the directory takes it; then remove what is too much.

        Returns where it is, None where it could not be written, or is too much alone.
        """
        path, is_kept = self._path(key), False
        with suppress(OSError, BraidError):
            # Weights may be of a file that only its owner may read.
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(exist_ok=True)
            if path.is_symlink() or (path.exists() and not path.is_file()):
                remove(path)
            write(path)
            is_kept = path.stat().st_size <= self.limit
            if not is_kept:
                remove(path)
        with suppress(OSError):
            self._trim()
        return path if is_kept else None

    def files(self) -> Iterator[Path]:
        """What stands where artifacts do, in the order of the names."""
        return iter(sorted(self.directory.glob(f"??/*{_SUFFIX}")))

    def damage(self, path: Path) -> str | None:
        """What is wrong with the artifact at `path`; None if it holds, or is gone."""
        if not path.exists():
            return None
        try:
            read_artifact(path).check()
        except BraidError as error:
            return error.message if path.exists() else None
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


def default_artifacts() -> ArtifactCache:
    """The artifacts in `$BRAID_CACHE_DIR`, or in the user's cache directory.

    Raises BraidError where `$BRAID_CACHE_LIMIT` is no size.
    """
    text = os.environ.get(LIMIT)
    try:
        limit = parse_size(text) if text else _DEFAULT_LIMIT
    except ValueError as error:
        raise BraidError(f"{LIMIT} {error}", hint="such as 4GiB; 0 keeps nothing") from error
    return ArtifactCache(cache_directory() / OBJECTS / "models", limit)
