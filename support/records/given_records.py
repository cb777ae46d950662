"""Reading other records than those of a store, to see what would be decided by them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from braid.support.claims import Claims
from braid.support.records.record import Fields, Record, RecordStore


@dataclass(frozen=True)
class GivenRecords(RecordStore):
    """As `store`, but that reading a kind of `given` returns what that says."""

    store: RecordStore
    given: Mapping[str, Mapping[str, Fields]]

    def read(self, kind: str) -> Mapping[str, Fields]:
        """Return the records of `given`, else those of the store."""
        return self.given[kind] if kind in self.given else self.store.read(kind)

    def append(self, records: Iterable[Record]) -> None:
        """As the store, which reads do not show."""
        self.store.append(records)

    def rows(self) -> Sequence[Record | None]:
        """As the store."""
        return self.store.rows()

    def salvaged(self) -> Sequence[Record]:
        """As the store."""
        return self.store.salvaged()

    def damage(self) -> Iterator[tuple[str, str]]:
        """As the store."""
        return self.store.damage()

    def count(self) -> dict[str, int]:
        """As the store."""
        return self.store.count()

    def drop_replaced(self) -> int:
        """As the store."""
        return self.store.drop_replaced()

    def files(self) -> Sequence[Path]:
        """As the store."""
        return self.store.files()

    def claims(self) -> AbstractContextManager[Claims]:
        """As the store."""
        return self.store.claims()
