"""The table of records over a connection, whatever the database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, column, delete, func, insert, inspect, select, table

from braid.support.records.database import RECORDS
from braid.support.records.record import COLUMNS, Record, record_of


@dataclass(frozen=True)
class Rows:
    """The rows of the table; what is changed waits for the commit of `connection`."""

    connection: Connection

    def numbered(self, after: int = 0) -> Iterator[tuple[int, Record | None]]:
        """Return the rows with larger numbers than `after`, in order; The value is None for an
        invalid row.
        """
        query = select(RECORDS.c.number, *(RECORDS.c[name] for name in COLUMNS))
        found = self.connection.execute(query.where(RECORDS.c.number > after).order_by("number"))
        while row := found.fetchone():
            yield row[0], record_of(row[1:])

    def insert(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows by `COLUMNS`."""
        if rows:
            self.connection.execute(insert(RECORDS), rows)

    def put_back(self, others: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Add the rows of other tables, by table name, to the rows that exist."""
        known = inspect(self.connection)
        for name in others.keys() & set(known.get_table_names()):
            columns = {each["name"] for each in known.get_columns(name)}
            rows = [{k: v for k, v in row.items() if k in columns} for row in others[name]]
            target = table(name, *map(column, rows[0]))
            self.connection.execute(insert(target).prefix_with("OR IGNORE"), rows)

    def count(self) -> dict[str, int]:
        """Return how many each kind has."""
        query = select(RECORDS.c.kind, func.count()).group_by(RECORDS.c.kind)
        return {row[0]: row[1] for row in self.connection.execute(query)}

    def drop_replaced(self) -> int:
        """Remove the rows that a later one of their kind and key stands for; how many."""
        last = select(func.max(RECORDS.c.number)).group_by(RECORDS.c.kind, RECORDS.c.key)
        return self.connection.execute(
            delete(RECORDS).where(RECORDS.c.number.not_in(last))
        ).rowcount
