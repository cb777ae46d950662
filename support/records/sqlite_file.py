"""A file of SQLite with records, if it is one: opened to write, or only to read."""

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from braid.support.errors import BraidError
from braid.support.private_files import make_private_file, tighten_file

if TYPE_CHECKING:  # this import takes a while, and is not needed without a file
    import sqlite3

    from braid.support.records.rows import Rows

_HEADER = b"SQLite format 3\0"
"""The first bytes of files of SQLite."""
_DAMAGE = frozenset({1, 11, 26})
"""Codes of SQLite for what holds no table of records, is corrupt, or is not a database."""
BESIDE = ("-wal", "-shm", "-journal")
"""Ends of the names of the files that SQLite has beside its own."""
_AS_IT_IS = "mode=ro&immutable=1"
"""The parameters of the URI of a file beside which nothing can be written."""
_NO_SPACE = frozenset({10, 13, 14})
"""Codes of SQLite for what cannot be written, is full, or cannot be opened."""
_SECONDS_TO_WAIT = 20.0
"""The seconds to wait for a process that writes, before records count as unavailable."""

_BEFORE_RECORDS = {"alembic_version", "sqlite_autoindex_alembic_version_1"}
"""The tables and indexes that a new file has before the table of records."""


class DamagedError(Exception):
    """The file is not the expected store; the message says how it differs."""


@dataclass(frozen=True)
class SqliteFile:
    """The file at `path`, which need not exist; `is_own` as in `FileStore`."""

    path: Path
    is_own: bool = True

    def _strangers(self) -> Iterator[Path]:
        """Yield where SQLite would find a directory, a pipe or the like; beside its file, also a
        link.

        Raises OSError where its file is not there, or may not be looked at.
        """
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):
                yield self.path
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            yield self.path
        for path in self._beside():
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISREG(path.lstat().st_mode):
                    yield path

    def _beside(self) -> Iterator[Path]:
        """Return the paths at which SQLite keeps files next to its own."""
        paths = (self.path.with_name(self.path.name + end) for end in BESIDE)
        return (path for path in paths if os.path.lexists(path))

    @contextlib.contextmanager
    def _opened(self, *, write: bool) -> Generator["Rows"]:
        """Yield the table. Raises DamagedError, and OSError where it cannot be had."""
        self._look(write=write)
        from sqlalchemy.exc import DBAPIError

        from braid.support.records.database import sqlite_engine, upgrade
        from braid.support.records.rows import Rows

        try:
            with sqlite_engine(partial(self._connected, write=write)).connect() as connection:
                if write:
                    upgrade(connection)
                yield Rows(connection)
        except DBAPIError as error:
            raise failure(error.orig or error) from error
        except (UnicodeDecodeError, OverflowError) as error:
            raise failure(error) from error

    def _look(self, *, write: bool) -> None:
        """Look whether there is a file, and make one to write to. Raises as `_opened` does."""
        if write and not self.path.exists() and not self.path.is_symlink():
            make_private_file(self.path)  # SQLite gives its mode to the files beside it
        for path in self._strangers():  # opening a pipe would wait
            if not self.is_own:
                raise _other(self.path, f"'{path.name}' is not a file")
            raise DamagedError(f"'{path.name}' is not a file")
        if self.is_own:
            for path in (self.path, *self._beside()):
                tighten_file(path)
        if not self.is_own and (status := self.path.stat()).st_size:
            _check_ours(self.path, (status.st_dev, status.st_ino))
        if not write and self.path.stat().st_size == 0:
            raise FileNotFoundError(errno.ENOENT, "it is empty", str(self.path))

    def _connected(self, *, write: bool) -> "sqlite3.Connection":
        """Return a connection, or a read-only one if the file cannot be written.

        Raises FileNotFoundError to read a file without the table: its writer was killed before it.
        """
        import sqlite3

        writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        database = self._file("mode=rw" if writable or write else _AS_IT_IS)
        if write:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            return database
        try:
            tables = database.execute("SELECT name FROM sqlite_master").fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _NO_SPACE or self._has_log():
                raise
            database.close()  # readers need disk space for shared memory
            return self._file(_AS_IT_IS)
        if {name for (name,) in tables} <= _BEFORE_RECORDS:
            database.close()
            raise FileNotFoundError(errno.ENOENT, "it is empty", str(self.path))
        return database

    def _file(self, mode: str) -> "sqlite3.Connection":
        import sqlite3

        uri = f"{self.path.resolve().as_uri()}?{mode}"
        database = sqlite3.connect(uri, uri=True, timeout=_SECONDS_TO_WAIT)
        database.text_factory = _decoded
        return database

    def _has_log(self) -> bool:
        """Return whether files next to this one hold rows of it."""
        log = self.path.with_name(f"{self.path.name}-wal")
        return log.exists() and log.stat().st_size > 0


@cache
def _check_ours(path: Path, _: object) -> None:
    """Raise BraidError for a file that is no database, or one of something else."""
    import sqlite3

    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise _other(path, "it is not a file of SQLite")
    with (
        contextlib.suppress(sqlite3.Error),  # it is damaged
        contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as data,
    ):
        names = data.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if names and ("records",) not in names:
            raise _other(path, "its tables are others")


def _other(path: Path, why: str) -> BraidError:
    return BraidError(
        f"'{path}' is no database of records: {why}",
        hint="BRAID_RECORDS says where records are; name a file that is not there yet, or one that "
        "braid has made",
    )


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace")


def failure(error: BaseException) -> Exception:
    """Return the meaning of an error of SQLite for the file: damaged, or not accessible."""
    import sqlite3

    if isinstance(error, UnicodeDecodeError | OverflowError):
        return DamagedError(str(error))
    code = getattr(error, "sqlite_errorcode", 1) & 0xFF
    is_damage = isinstance(error, sqlite3.DatabaseError) and code in _DAMAGE
    return DamagedError(str(error)) if is_damage else OSError(str(error))
