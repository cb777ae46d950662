"""Object files on disk, by the content of what they were compiled from."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from braid.support.cache_directory import cache_directory


@dataclass(frozen=True)
class ObjectCache:
    """A directory of object files, shared by any number of processes.

    Entries appear whole or not at all, and are never changed. A directory that cannot be
    written only costs the compilations it would have saved.
    """

    directory: Path

    def get(self, key: str) -> bytes | None:
        """The object file under `key`, if there is one."""
        try:
            return self._path(key).read_bytes()
        except OSError:
            return None

    def put(self, key: str, object_code: bytes) -> None:
        """Keeps an object file."""
        path = self._path(key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
                temporary = Path(file.name)
            try:
                temporary.write_bytes(object_code)
                temporary.replace(path)
            except OSError:
                temporary.unlink()  # a full disk keeps no halves

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key[2:]}.o"


def default_cache() -> ObjectCache:
    """The cache in `$BRAID_CACHE_DIR`, or in the user's cache directory."""
    return ObjectCache(cache_directory() / "objects")
