"""Keep what was compiled before on disk, by the content of what it was compiled from."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from braid.support.cache_files import (
    SUFFIX,
    DamagedEntryError,
    own_objects_directory,
    read_entry,
    remove,
    warn_of_damage,
    warn_of_unusable,
    write_entry,
)
from braid.support.errors import BraidError
from braid.support.private_files import check_private_directories


class Kind(StrEnum):
    """The kind of an entry, and the directory of the entries of this kind."""

    OBJECT = "objects"
    """The object file of a kernel, by its text and the machine."""
    KERNEL = "kernels"
    """The key of a kernel's object, and the facts of its calls, by the group it is made from."""
    STREAM = "streams"
    """The stream object of a subgraph, by the subgraph."""
    CIRCUIT = "circuits"
    """The library of a verilated circuit, by its text and its tools; and the part that all
    share."""


@dataclass(frozen=True)
class ObjectCache:
    """A directory of entries, shared by any number of processes.

    Entries appear whole or not at all, name what they belong to, and are never changed. A damaged
    one counts as missing: it is removed, and replaced when it is made again. A directory that
    cannot be read or written only costs the compilations it would have saved.
    """

    directory: Path

    def get(self, kind: Kind, key: str) -> bytes | None:
        """Return the payload under `key`, None if there is none or it is damaged.

        Raises BraidError where the directory of entries belongs to another user.
        """
        path = self._path(kind, key)
        check_private_directories(self.directory, path.parent)
        try:
            return read_entry(path, _full_key(kind, key))
        except OSError:
            return None
        except DamagedEntryError as error:
            warn_of_damage(f"entry '{path}' of the cache is damaged, and made again: {error}")
            with suppress(OSError):
                remove(path)
            return None

    def put(self, kind: Kind, key: str, content: bytes) -> None:
        """Keep `content` under `key`; warns, once, where the directory does not take it."""
        try:
            write_entry(self._path(kind, key), _full_key(kind, key), content)
        except (OSError, BraidError) as error:
            warn_of_unusable(error)

    def files(self, kind: Kind) -> Iterator[Path]:
        """Return the paths at which entries of this kind are, sorted by name."""
        return iter(sorted((self.directory / kind).glob(f"??/*{SUFFIX}")))

    def damage(self, kind: Kind, path: Path) -> str | None:
        """Return what is wrong with the entry at `path`, one of `files(kind)`; None if it holds."""
        key = f"{path.parent.name}{path.name.removesuffix(SUFFIX)}"
        try:
            check_private_directories(self.directory, path.parent)
            read_entry(path, _full_key(kind, key))
        except BraidError as error:
            return error.message
        except DamagedEntryError as error:
            return str(error)
        except FileNotFoundError:  # another process has removed it
            return None
        except OSError as error:
            return error.strerror or str(error)
        return None

    def _path(self, kind: Kind, key: str) -> Path:
        return self.directory / kind / key[:2] / f"{key[2:]}{SUFFIX}"


def default_cache() -> ObjectCache:
    """Return the cache in `$BRAID_CACHE_DIR`, or in the user's cache directory.

    Raises BraidError where others can write to it.
    """
    return ObjectCache(own_objects_directory())


def _full_key(kind: Kind, key: str) -> str:
    return f"{kind}/{key}"
