"""Schedules as dataclasses, and as records have them."""

from dataclasses import dataclass

import pytest

from braid.targets.kernels.schedules import Schedule, ScheduleError


@dataclass(frozen=True)
class Sizes(Schedule):
    rows: int
    tile: tuple[int, ...]
    outside: bool
    splits: int = 1


ENTRIES = {"rows": 4, "tile0": 8, "tile1": 16, "outside": 1, "splits": 2}


def test_entries_are_read_as_they_are_written() -> None:
    sizes = Sizes(4, (8, 16), True, 2)
    assert sizes.entries == ENTRIES and list(sizes.entries) == list(ENTRIES)
    assert all(type(value) is int for value in sizes.entries.values())
    assert Sizes.read(ENTRIES) == sizes
    assert Schedule().entries == {} and Schedule.read({}) == Schedule()


def test_what_was_added_later_is_as_by_default() -> None:
    older = {name: value for name, value in ENTRIES.items() if name != "splits"}
    assert Sizes.read(older) == Sizes(4, (8, 16), True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": None}, "'rows' is missing"),
        ({"tile0": None}, "'tile0' is missing"),
        ({"tile1": None, "tile2": 4}, "there is no 'tile2', expected rows, tile, outside, splits"),
        ({"depth": 4}, "there is no 'depth', expected rows, tile, outside, splits"),
        ({"rows": -1}, "'rows' is -1, expected a number from 0 to 2147483647"),
        ({"tile1": 1 << 31}, "'tile1' is 2147483648, expected a number from 0 to 2147483647"),
        ({"outside": 2}, "'outside' is 2, expected 0 or 1"),
    ],
)
def test_other_entries_are_refused(change: dict[str, int | None], message: str) -> None:
    entries = {k: v for k, v in {**ENTRIES, **change}.items() if v is not None}
    with pytest.raises(ScheduleError, match=message):
        Sizes.read(entries)


def test_nothing_to_choose_has_no_entries() -> None:
    with pytest.raises(ScheduleError, match="there is no 'rows', expected none"):
        Schedule.read({"rows": 1})
