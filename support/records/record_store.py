"""Keep measurements: records that describe what was measured, and are only ever added.

A record has a kind (`cost`, …), a key, a value in JSON, the time and the machine it was made on,
the version of braid, and, in its row, a digest of all that: a row that does not match its digest is
never used. Records are in a file of SQLite in the user's cache, or where `$BRAID_RECORDS` says:
`sqlite:///FILE`, or `postgresql+psycopg://USER:PASSWORD@HOST/DATABASE`, for many machines. Any
number of processes may read and write at once; one that is killed leaves the rows before, or those
with its own.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from braid.support.cache_files import RECORDS, own_cache_directory
from braid.support.compile_scope import scope_variable
from braid.support.records.file_store import FileStore
from braid.support.records.given_records import GivenRecords
from braid.support.records.record import LOCATION, Fields, Record, RecordStore, is_storable

__all__ = [
    "Fields",
    "Record",
    "RecordStore",
    "default_store",
    "is_storable",
    "open_store",
    "reading",
]

_GIVEN: ContextVar[Mapping[str, Mapping[str, Fields]] | None] = scope_variable(
    "given_records", None
)


def default_store() -> RecordStore:
    """Return this user's store, at `$BRAID_RECORDS` or in the cache directory.

    Raises BraidError where the variable names no database that braid knows, or others can write to
    the cache directory.
    """
    location = os.environ.get(LOCATION)
    store = open_store(location) if location else open_store(own_cache_directory() / RECORDS)
    given = _GIVEN.get()
    return GivenRecords(store, given) if given else store


@contextmanager
def reading(given: Mapping[str, Mapping[str, Fields]]) -> Generator[None]:
    """Let the user's store have these values by key, of each kind that `given` has."""
    token = _GIVEN.set(given)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def open_store(location: Path | str) -> RecordStore:
    """Return the store in a file, or at a URL. Raises BraidError if the place holds no records."""
    if isinstance(location, Path):
        return FileStore(location)
    from braid.support.records.database import database_url
    from braid.support.records.server_store import ServerStore

    url = database_url(location)
    if url.drivername == "sqlite":
        return FileStore(Path(url.database or ""), is_own=False)
    return ServerStore(url)
