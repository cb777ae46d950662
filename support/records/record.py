"""A record, its row, and the interface of every store of records."""

import hashlib
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from braid.support.claims import Claims
from braid.support.input_files import parse_json
from braid.support.toolchain import braid_version

Fields = Mapping[str, Any]
"""A value: what JSON can hold, by name."""

LOCATION = "BRAID_RECORDS"
"""The variable that says where records are."""

COLUMNS = ("kind", "key", "value", "created", "machine", "version", "digest")
"""The columns of a row, in the order of its digest."""


@dataclass(frozen=True)
class Record:
    """One row: `value` under `kind` and `key`, made on `machine` at `created` (seconds, UNIX)."""

    kind: str
    key: str
    value: Fields
    machine: str = ""
    created: float = field(default_factory=time.time)
    version: str = field(default_factory=braid_version)


class RecordStore(ABC):
    """Records in one place, which need not exist yet."""

    @abstractmethod
    def read(self, kind: str) -> Mapping[str, Fields]:
        """Return the values of a kind by their keys; the last one of a key counts.

        The same object as long as nobody has written.
        """

    def get(self, kind: str, key: str) -> Fields | None:
        """Return the last value under a key."""
        return self.read(kind).get(key)

    @abstractmethod
    def append(self, records: Iterable[Record]) -> None:
        """Add records, all or none. Raises BraidError where they cannot be written."""

    @abstractmethod
    def rows(self) -> Sequence[Record | None]:
        """Return all records in their order, None for one that does not match its digest."""

    @abstractmethod
    def salvaged(self) -> Sequence[Record]:
        """Return the records that hold, as far as they can be read."""

    @abstractmethod
    def damage(self) -> Iterator[tuple[str, str]]:
        """Return the defects, each with its place. Repairs nothing."""

    @abstractmethod
    def count(self) -> dict[str, int]:
        """Return how many rows each kind has; empty where they cannot be read."""

    def stamp(self) -> str:
        """Return a text that differs when there are other records."""
        return repr(sorted(self.count().items()))

    @abstractmethod
    def drop_replaced(self) -> int:
        """Remove the rows that a later one of their kind and key replaces, and return how many
        there were.

        Raises BraidError where they cannot be removed.
        """

    @abstractmethod
    def files(self) -> Sequence[Path]:
        """Return its files in this machine's file system."""

    @abstractmethod
    def claims(self) -> AbstractContextManager[Claims]:
        """Return all claims, of this process too, on work whose results come here."""


def row_of(record: Record) -> dict[str, Any]:
    """Return the row of a record by `COLUMNS`."""
    value = json.dumps(record.value, sort_keys=True, allow_nan=False)
    fields = (record.kind, record.key, value, record.created, record.machine, record.version)
    return dict(zip(COLUMNS, (*fields, _digest(fields)), strict=True))


def record_of(row: Sequence[Any]) -> Record | None:
    """Return the record in a row, None where it is damaged."""
    *fields, digest = row
    kind, key, text, created, machine, version = fields
    if not isinstance(created, float) or not math.isfinite(created) or _digest(fields) != digest:
        return None
    try:
        value: object = parse_json(text)
    except (ValueError, TypeError):
        return None
    if not isinstance(value, dict):
        return None
    return Record(kind, key, cast(Fields, value), machine, created, version)


def is_storable(record: Record) -> bool:
    """Return whether every store takes `record`, whose fields may be anything, and gives it
    back.
    """
    texts = (record.kind, record.key, record.machine, record.version)
    try:
        is_text = all(b"\0" not in str.encode(text) for text in texts)
        return is_text and record_of(tuple(row_of(record).values())) == record
    except (ValueError, TypeError):
        return False


def _digest(fields: Iterable[object]) -> str:
    return hashlib.sha256("\0".join(map(repr, fields)).encode()).hexdigest()
