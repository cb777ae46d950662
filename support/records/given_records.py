"""Read given records instead of a store's, to see what would be decided by them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from braid.support.claims import Claims
from braid.support.records.record import Fields, Record, RecordStore


@dataclass(frozen=True)
class GivenRecords(RecordStore):
    """A store whose kinds in `given` read as given."""

    store: RecordStore
    given: Mapping[str, Mapping[str, Fields]]

    def read(self, kind: str) -> Mapping[str, Fields]:
        """Return the records of `given`, else those of the store."""
        return self.given[kind] if kind in self.given else self.store.read(kind)

    def append(self, records: Iterable[Record]) -> None:
        """Append as the store does; reads do not show it."""
        self.store.append(records)

    def rows(self) -> Sequence[Record | None]:
        """Return the store's rows."""
        return self.store.rows()

    def salvaged(self) -> Sequence[Record]:
        """Return what the store has salvaged."""
        return self.store.salvaged()

    def damage(self) -> Iterator[tuple[str, str]]:
        """Return the store's damage."""
        return self.store.damage()

    def count(self) -> dict[str, int]:
        """Return the store's count."""
        return self.store.count()

    def drop_replaced(self) -> int:
        """Drop replaced records of the store."""
        return self.store.drop_replaced()

    def files(self) -> Sequence[Path]:
        """Return the store's files."""
        return self.store.files()

    def claims(self) -> AbstractContextManager[Claims]:
        """Return the store's claims."""
        return self.store.claims()
