"""Records in a file of SQLite.

A file that is damaged is moved aside, and the rows of it that hold are kept. A file that is no
database of records is replaced only if braid chose its path, and else refused.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from braid.support.cache_files import remove, warn_of_damage
from braid.support.claims import Claims, claims
from braid.support.errors import BraidError
from braid.support.input_files import reason
from braid.support.private_files import DIRECTORY_MODE, open_private, private_directory
from braid.support.records.record import (
    COLUMNS,
    Fields,
    Record,
    RecordStore,
    record_of,
    row_of,
)
from braid.support.records.sqlite_file import BESIDE, DamagedError, SqliteFile, failure

_CLAIMS = "tuning.lock"
"""The file of claims, which is next to the file of records."""


@dataclass(frozen=True)
class FileStore(SqliteFile, RecordStore):
    """The rows in the file at `path`, which need not exist.

    A file that cannot be read holds nothing. With `is_own` braid chose the path and may replace any
    file there. Otherwise a file of another kind is left alone, and every method raises BraidError.
    """

    def read(self, kind: str) -> Mapping[str, Fields]:
        """Return the values of a kind by their keys; the last one of a key counts.

        A damaged file is moved aside with a warning, and its valid rows are returned.
        """
        return _read(self, kind, self._stamp())

    def append(self, records: Iterable[Record]) -> None:
        """Add rows, all or none; a damaged file is replaced first.

        Raises BraidError where the file cannot be written.
        """
        rows = [row_of(record) for record in records]
        try:
            if self.is_own:
                private_directory(self.path.parent)
            else:  # what its user has put there
                self.path.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            with self._locked():
                try:
                    self._insert(rows)
                except DamagedError as error:
                    self._replace(str(error))
                    self._insert(rows)
        except (OSError, DamagedError) as error:
            raise BraidError(
                f"measurements cannot be kept in '{self.path}': {reason(error)}",
                hint="nothing is chosen by them; set BRAID_CACHE_DIR, or BRAID_RECORDS where it "
                "is set, to a place with free space that you may write to",
            ) from error

    def damage(self) -> Iterator[tuple[str, str]]:
        """Yield the defects of the file, each with its place. Repairs nothing."""
        try:
            with self._opened(write=False) as rows:
                for (verdict,) in rows.connection.exec_driver_sql("PRAGMA integrity_check(20)"):
                    if verdict != "ok":
                        yield str(self.path), verdict
                for number, record in rows.numbered():
                    if record is None:
                        yield f"{self.path}: row {number}", "it does not match its digest"
        except FileNotFoundError:
            return
        except (DamagedError, OSError) as error:
            yield str(self.path), str(error)

    def count(self) -> dict[str, int]:
        """Return how many rows each kind has; empty where they cannot be read."""
        try:
            with self._opened(write=False) as rows:
                return rows.count()
        except (DamagedError, OSError):
            return {}

    def stamp(self) -> str:
        """Return a text that differs when there are other records, without reading the file."""
        return repr([self.path, *(stamp for stamp in self._stamp() if stamp[1])])

    def files(self) -> list[Path]:
        """Return the files of the store: the file of records and its companions."""
        ends = ("", *BESIDE, ".lock", ".damaged")
        paths = [self.path.with_name(self.path.name + end) for end in ends]
        return [path for path in paths if path.exists() or path.is_symlink()]

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        """Return a stamp that is equal while nobody has written."""
        found: list[tuple[int, int]] = []
        for path in (self.path, self.path.with_name(f"{self.path.name}-wal")):
            with contextlib.suppress(OSError):
                status = path.lstat()
                found.append((status.st_mtime_ns, status.st_size))
        return tuple(found)

    def _insert(self, rows: Sequence[Mapping[str, Any]]) -> None:
        with self._opened(write=True) as table:
            table.insert(rows)
            table.connection.commit()

    def rows(self) -> list[Record | None]:
        """Return all rows in their order, None for one that does not match its digest.

        Every compilation reads them, and importing SQLAlchemy would take longer than that.
        """
        import sqlite3

        self._look(write=False)
        try:
            with contextlib.closing(self._connected(write=False)) as database:
                (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
                if verdict != "ok":
                    raise DamagedError(verdict)
                found = database.execute(
                    f"SELECT {', '.join(COLUMNS)} FROM records ORDER BY number"
                )
                return [record_of(row) for row in found]
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise failure(error) from error

    def drop_replaced(self) -> int:
        """Remove the rows that a later one of their kind and key replaces, and return how many
        there were.

        Raises BraidError where the file cannot be written.
        """
        try:
            if not self.path.exists():
                return 0
            with self._locked(), self._opened(write=True) as rows:
                count = rows.drop_replaced()
                rows.connection.commit()
                return count
        except (OSError, DamagedError) as error:
            raise BraidError(
                f"records cannot be removed from '{self.path}': {reason(error)}",
                hint="braid cache verify says what is damaged",
            ) from error

    def salvaged(self) -> list[Record]:
        """Return the rows that hold, as far as the file is not damaged; none where there is no
        file.

        Raises BraidError where it cannot be read.
        """
        try:
            return [*self._holding()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BraidError(
                f"records in '{self.path}' cannot be read: {reason(error)}",
                hint="they are in the cache directory, or where BRAID_RECORDS says",
            ) from error

    def readable(self) -> list[Record]:
        """Return the rows that hold, as far as the file can be read."""
        found: list[Record] = []
        with contextlib.suppress(OSError):
            found.extend(self._holding())
        return found

    def _holding(self) -> Iterator[Record]:
        """Yield the rows that hold, up to where the file is damaged. Raises OSError."""
        with contextlib.suppress(DamagedError), self._opened(write=False) as rows:
            for _, record in rows.numbered():
                if record is not None:
                    yield record

    def claims(self) -> contextlib.AbstractContextManager[Claims]:
        """Return locks in a file beside; where it cannot be made, this process claims
        everything.
        """
        return claims(self.path.with_name(_CLAIMS))

    def _rescued(self) -> list[Record]:
        """Return the valid rows, unless foreign files are next to the store."""
        for path in self._strangers():
            if path != self.path:
                remove(path)
        return self.readable()

    def heal(self, reason: str) -> list[Record]:
        """Replace the file by its valid rows. Raises OSError where it cannot be written."""
        with self._locked():
            kept = self._rescued()
            if next(self.damage(), None) is not None:  # else another process was faster
                self._replace(reason)
        return kept

    def _replace(self, reason: str) -> None:
        kept = self._rescued()
        warn_of_damage(
            f"the measurements in '{self.path}' are damaged, {len(kept)} of them are kept: {reason}"
        )
        aside = self._aside()
        others = self._other_rows()
        self.path.replace(aside)
        for end in BESIDE:
            with contextlib.suppress(OSError):
                remove(self.path.with_name(self.path.name + end))
        if kept or others:
            with self._opened(write=True) as table:
                table.insert([row_of(record) for record in kept])
                table.put_back(others)
                table.connection.commit()

    def _aside(self) -> Path:
        """Return the path for a damaged file: that of an earlier one, if both are braid's."""
        aside, number = self.path.with_name(f"{self.path.name}.damaged"), 2
        if self.is_own:
            with contextlib.suppress(OSError):
                remove(aside)
            return aside
        while os.path.lexists(aside):
            aside, number = self.path.with_name(f"{self.path.name}.damaged-{number}"), number + 1
        return aside

    def _other_rows(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return the rows of the other tables of records, as far as they can be read."""
        import sqlite3

        found: dict[str, list[Mapping[str, Any]]] = {}
        wrong = (sqlite3.Error, UnicodeDecodeError, OverflowError)
        with contextlib.suppress(*wrong, DamagedError, OSError):
            self._look(write=False)
            with contextlib.closing(self._connected(write=False)) as database:
                database.row_factory = sqlite3.Row
                names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                for name in {row[0] for row in names} - {"records", "alembic_version"}:
                    with contextlib.suppress(*wrong):
                        rows = found.setdefault(name, [])
                        for row in database.execute(f'SELECT * FROM "{name}" NOT INDEXED'):
                            rows.append(dict(row))
        return {name: rows for name, rows in found.items() if rows}

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        path = self.path.with_name(f"{self.path.name}.lock")
        descriptor = open_private(path)
        try:
            with contextlib.suppress(OSError):  # whoever may write to the file may lock it
                os.fchmod(descriptor, stat.S_IMODE(self.path.stat().st_mode))
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


@cache
def _read(store: FileStore, kind: str, stamp: object) -> Mapping[str, Fields]:
    if not stamp:
        return {}
    try:
        records = store.rows()
        if None in records:
            raise DamagedError(f"{records.count(None)} rows do not match their digests")
    except DamagedError as error:
        try:
            records = store.heal(str(error))
        except (OSError, DamagedError):
            records = store.readable()
    except OSError:
        return {}
    return {r.key: r.value for r in records if r is not None and r.kind == kind}
