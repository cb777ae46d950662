"""Tables of a TOML file, read with checks that say where in the file something is wrong."""

import math
import re
import reprlib
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from braid.support.errors import BraidError, SourceLocation

T = TypeVar("T")
_HUGE = 1e30
"""A number above any rate or time of a machine, whose inverse is below any rate."""
_MOST = 1 << 60
"""A number above any size or count that fits the integers of solvers and streams."""
_KINDS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}
_NAME = re.compile(r"[^\W\d_][\w./+-]*(:\d+)?")


@dataclass(frozen=True)
class Table:
    """A table of the file, read with checks; `path` is the place in the file."""

    data: Mapping[str, Any]
    path: str
    location: SourceLocation

    def get(self, key: str, kind: type, default: object = None) -> Any:
        """Return the value under `key`, of this kind; integers are floats where these are asked
        for.
        """
        if key not in self.data and default is None:
            raise self.error(f"there is no '{key}', expected {_KINDS[kind]}")
        value = self.data.get(key, default)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value) if abs(value) < _HUGE else math.inf
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(f"'{key}' is {reprlib.repr(value)}, expected {_KINDS[kind]}")
        most = _MOST if kind is int else _HUGE
        if kind in (int, float) and not 0 <= value < most:
            raise self.error(
                f"'{key}' is {reprlib.repr(value)}, expected no negative number, and less than "
                f"{float(most):.0e}"
            )
        return value

    def name(self) -> str:
        """Return the `name`: of letters, digits and `.-/+_`, and `:0` after it for one that is
        counted.

        Names stand in attributes, artifacts and diagnostics.
        """
        name = self.get("name", str)
        if not _NAME.fullmatch(name):
            raise self.error(
                f"'name' is {reprlib.repr(name)}, expected a letter, and letters, digits, or one "
                "of ./+_- after it"
            )
        return name

    def positive(self, key: str, kind: type) -> Any:
        """Return the number under `key`, which has to be there and more than 0."""
        value = self.get(key, kind)
        if value < 1 / _HUGE:
            raise self.error(f"'{key}' is {value}, expected a positive number")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, by default empty."""
        values = cast(list[Any], self.get(key, list, []))
        if not all(isinstance(value, str) for value in values):
            raise self.error(f"'{key}' is {reprlib.repr(values)}, expected a list of strings")
        return tuple(values)

    def tables(self, key: str) -> list["Table"]:
        """Return the tables `[[key]]` in this one."""
        values = cast(list[Any], self.get(key, list, []))
        if not all(isinstance(value, dict) for value in values):
            raise self.error(f"'{key}' is not a list of tables [[{key}]]")
        return [
            Table(value, f"{self.path}.{key}[{index}]", self.location)
            for index, value in enumerate(values)
        ]

    def named(self, key: str) -> list["Table"]:
        """Return the tables `[[key]]`, whose names are unique."""
        tables = self.tables(key)
        names = [table.name() for table in tables]
        for place, table in enumerate(tables):
            if names[place] in names[:place]:
                raise table.error(f"there already is a [[{key}]] '{names[place]}'")
        return tables

    def optional(self, key: str) -> "Table | None":
        """Return the only table `[[key]]`, None if there is none."""
        tables = self.tables(key)
        if len(tables) > 1:
            raise self.error(f"{len(tables)} tables [[{key}]], expected at most one")
        return tables[0] if tables else None

    def expect_only(self, *keys: str) -> None:
        """Raise BraidError for any other key."""
        unknown = sorted(set(self.data) - set(keys))
        if unknown:
            raise self.error(f"unknown keys {unknown}, expected {sorted(keys)}")

    def error(self, message: str, hint: str | None = None) -> BraidError:
        """Return a diagnostic that names the file and this table."""
        return BraidError(
            f"malformed target: {self.path}: {message}", location=self.location, hint=hint
        )

    def located(self, ask: Callable[[], T]) -> T:
        """Return what `ask` returns; what it raises names the file and this table."""
        try:
            return ask()
        except BraidError as error:
            raise self.error(error.message, error.hint) from error

    def require_known(self, what: str, name: str, known: Set[str]) -> None:
        """Raise BraidError unless `name` is one of `known`; "" stands for none."""
        if name not in known:
            expected = sorted(known - {""})
            raise self.error(f"there is no {what} '{name}', expected one of {expected}")
