"""Schedules: what a kernel family may choose for a kernel, as a dataclass and as records name it.

Families declare a frozen dataclass and are given its instances; tuning, records and
`braid.schedule` have *entries*, its values by the names of its fields. `Match` alone converts.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from itertools import count, takewhile
from typing import Any, Self

from braid.support.errors import BraidError

Entries = Mapping[str, int]
"""A schedule as records and `braid.schedule` have it: whole numbers by name."""

_MOST = 1 << 31
"""A number above any value that makes sense."""


class ScheduleError(BraidError):
    """Entries are no schedule of a family: the message names which."""


@dataclass(frozen=True)
class Schedule:
    """Base class of schedules, and the schedule of families that have nothing to choose.

    A subclass is a frozen dataclass with fields of three types, whose names and values stand in
    records: `int` for tile sizes and unroll factors, `bool` for what is done or not (0 or 1), and
    `tuple[int, ...]` for one number a dim (`tile` has the entries `tile0`, `tile1`, …). A field
    that was added later has a default, so that records without it keep their meaning.
    """

    @property
    def entries(self) -> Entries:
        """Return the values by name, as records have them."""
        found: dict[str, int] = {}
        for field in fields(self):
            value: int | bool | tuple[int, ...] = getattr(self, field.name)
            if isinstance(value, tuple):
                found.update((f"{field.name}{place}", each) for place, each in enumerate(value))
            else:
                found[field.name] = int(value)
        return found

    @classmethod
    def read(cls, entries: Entries) -> Self:
        """Return the schedule of these entries.

        Raises ScheduleError where one is unknown, missing or out of the range of its type.
        """
        left = dict(entries)
        values = {field.name: _taken(field, left) for field in fields(cls)}
        if left:
            known = ", ".join(field.name for field in fields(cls)) or "none"
            raise ScheduleError(f"there is no '{min(left)}', expected {known}")
        return cls(**values)


def _taken(field: Field[Any], left: dict[str, int]) -> int | bool | tuple[int, ...]:
    """Return the value of a field, whose entries are removed from those that are left."""
    name = field.name
    if field.type == tuple[int, ...]:
        names = takewhile(left.__contains__, (f"{name}{place}" for place in count()))
        if values := tuple(_number(each, left.pop(each)) for each in names):
            return values
        raise ScheduleError(f"'{name}0' is missing")
    if name in left:
        return (_flag if field.type is bool else _number)(name, left.pop(name))
    if field.default is MISSING:
        raise ScheduleError(f"'{name}' is missing")
    return field.default


def _number(name: str, value: int) -> int:
    if not 0 <= value < _MOST:
        raise ScheduleError(f"'{name}' is {value}, expected a number from 0 to {_MOST - 1}")
    return value


def _flag(name: str, value: int) -> bool:
    if value not in (0, 1):
        raise ScheduleError(f"'{name}' is {value}, expected 0 or 1")
    return bool(value)
