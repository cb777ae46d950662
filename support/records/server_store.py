"""Records in a database of PostgreSQL, which many machines share."""

import hashlib
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock

from sqlalchemy import URL, Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from braid.support.claims import Claims
from braid.support.errors import BraidError
from braid.support.records.database import server_engine, shown, upgrade
from braid.support.records.record import LOCATION, Fields, Record, RecordStore, row_of
from braid.support.records.rows import Rows


@dataclass(frozen=True)
class ServerStore(RecordStore):
    """The records in the database at `url`.

    Every method raises BraidError where the server cannot be reached.
    """

    url: URL = field(repr=False)

    def read(self, kind: str) -> Mapping[str, Fields]:
        """Return the values of a kind by their keys; only rows that are new are asked for."""
        session = self._session()
        with session.lock, self._opened() as rows:
            session.add(rows.numbered(after=session.last))
            return session.values.setdefault(kind, {})

    def append(self, records: Iterable[Record]) -> None:
        """Add records, all or none."""
        new = [row_of(record) for record in records]
        with self._opened() as rows:
            # Otherwise a number could appear after a larger one, and readers that saw the larger
            # one would miss it.
            rows.connection.execute(text("LOCK TABLE records IN SHARE ROW EXCLUSIVE MODE"))
            rows.insert(new)
            rows.connection.commit()

    def rows(self) -> Sequence[Record | None]:
        """Return all records in their order, None for one that does not match its digest."""
        with self._opened() as rows:
            return [record for _, record in rows.numbered()]

    def salvaged(self) -> Sequence[Record]:
        """Return the records that hold."""
        return [record for record in self.rows() if record is not None]

    def damage(self) -> Iterator[tuple[str, str]]:
        """Yield the rows that do not match their digests."""
        with self._opened() as rows:
            for number, record in rows.numbered():
                if record is None:
                    where = f"{shown(self.url)}: row {number}"
                    yield where, "it does not match its digest"

    def count(self) -> dict[str, int]:
        """Return how many rows each kind has."""
        with self._opened() as rows:
            return rows.count()

    def drop_replaced(self) -> int:
        """Remove the rows that a later one of their kind and key stands for."""
        with self._opened() as rows:
            count = rows.drop_replaced()
            rows.connection.commit()
            return count

    def files(self) -> Sequence[Path]:
        """Return None: a server has no files."""
        return ()

    @contextmanager
    def claims(self) -> Generator[Claims]:
        """Return advisory locks of one connection: the server releases them when that ends."""
        with self._opened() as rows:
            connection = rows.connection
            connection.commit()
            yield _ServerClaims(connection.execution_options(isolation_level="AUTOCOMMIT"))

    def _session(self) -> "_Session":
        return _session_of(self.url, os.getpid())

    @contextmanager
    def _opened(self) -> Generator[Rows]:
        """Yield the table, in a database that is up to date."""
        try:
            session = self._session()
            with session.engine.connect() as connection:
                if not session.is_upgraded:
                    upgrade(connection)
                    session.is_upgraded = True
                yield Rows(connection)
        except DBAPIError as error:
            said = str(error.orig).strip().splitlines() or [type(error).__name__]
            raise BraidError(
                f"records in '{shown(self.url)}' cannot be accessed: {said[0]}",
                hint=f"{LOCATION} says where they are; without it they are in the cache directory",
            ) from error


class _ServerClaims(Claims):
    """Claims that the server of `connection` holds."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(None)
        self._connection = connection

    @contextmanager
    def claim(self, key: str) -> Generator[bool]:
        """Yield whether this process may work on this key for as long as the block runs."""
        digest = hashlib.sha256(key.encode()).digest()
        number = {"key": int.from_bytes(digest[:8], "little", signed=True)}
        has = self._connection.execute(text("SELECT pg_try_advisory_lock(:key)"), number).scalar()
        try:
            yield bool(has)
        finally:
            if has:
                self._connection.execute(text("SELECT pg_advisory_unlock(:key)"), number)


@dataclass
class _Session:
    """The part of a database that this process knows: values by kind and key, up to row `last`."""

    engine: Engine
    is_upgraded: bool = False
    last: int = 0
    values: dict[str, Mapping[str, Fields]] = field(default_factory=dict[str, Mapping[str, Fields]])
    lock: Lock = field(default_factory=Lock)

    def add(self, rows: Iterable[tuple[int, Record | None]]) -> None:
        """Add rows with their numbers, in order."""
        new: dict[str, dict[str, Fields]] = {}
        for number, record in rows:
            self.last = number
            if record is not None:
                new.setdefault(record.kind, {})[record.key] = record.value
        for kind, values in new.items():
            self.values[kind] = {**self.values.get(kind, {}), **values}


@cache
def _session_of(url: URL, process: int) -> _Session:
    """Return the session of this process: connections do not survive a fork."""
    return _Session(server_engine(url))
