"""Spaces of schedules as data: the searched part of a family's space, and additions to it.

```toml
[gemm]                        # of the family's schedules those alone with one of these values
rows = [4, 8]

[conv-direct]
mode = "extend"               # these as well, in all combinations; the rest is as by default
level = 1
rows = [5, 7]
schedules = [{rows = 3, vectors = 4}]
```

With `mode = "replace"`, only these are searched. JSON has the same tables. A file is the user's
own, or that of an installed package with an entry point of the group `braid.spaces`: a `Path`.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import cast

from braid.support.entry_points import installed_names, installed_path
from braid.support.errors import BraidError, SourceLocation, did_you_mean
from braid.support.input_files import parse_json, read_text, read_toml, reason
from braid.targets.kernels.family_names import current_name
from braid.targets.kernels.group_matches import Match
from braid.targets.kernels.kernel_family import LEVELS
from braid.targets.kernels.schedules import Entries

SPACES_GROUP = "braid.spaces"
_SUFFIXES = (".toml", ".json")
_KEYS = ("mode", "level", "schedules")
"""Names in a table that are not those of a schedule's entries."""
_EXAMPLE = "such as 'rows = [4, 8]'"
_MOST_ADDED = 100_000
"""Schedules that a table may add: each is checked with every kernel before anything is measured."""
_HEAD = re.compile(r'^\s*\[\s*"?([^\[\]"]*)"?\s*\]|"([^"]*)"\s*:\s*\{')
"""The pattern of the beginning of a table, in TOML or JSON."""


class Mode(StrEnum):
    """The way in which a table bears on the space of its family."""

    RESTRICT = "restrict"
    EXTEND = "extend"
    REPLACE = "replace"


@dataclass(frozen=True)
class FamilySpace:
    """The content of a table; `values` are the values that an entry may have, `locations` their
    places in the file.

    `schedules` are whole, or lack entries that are as by default. Additions are in `level`.
    """

    family: str
    mode: Mode
    level: int
    values: Mapping[str, tuple[int, ...]]
    schedules: tuple[Entries, ...]
    locations: Mapping[str, SourceLocation]

    def allows(self, schedule: Entries) -> bool:
        """Return whether the table keeps a schedule of the family."""
        if self.mode is Mode.EXTEND:
            return True
        listed = all(schedule.get(name) in values for name, values in self.values.items())
        return self.mode is Mode.RESTRICT and listed

    def added(self, match: Match) -> Iterator[Entries]:
        """Return the schedules that the file adds, as far as the candidate takes them."""
        return (
            each for each in self.offered(match.default_schedule()) if match.supports_schedule(each)
        )

    def offered(self, default: Entries) -> Iterator[Entries]:
        """Return all schedules that the file adds to a candidate with that default schedule."""
        if self.mode is Mode.RESTRICT:
            return
        yield from ({**default, **schedule} for schedule in self.schedules)
        if self.values:
            for chosen in product(*self.values.values()):
                yield {**default, **dict(zip(self.values, chosen, strict=True))}

    @property
    def names(self) -> tuple[str, ...]:
        """The entries that the table names."""
        every = (*self.values, *(name for schedule in self.schedules for name in schedule))
        return tuple(dict.fromkeys(every))

    def location(self, name: str = "") -> SourceLocation:
        """Return the location of an entry in the file, or that of the table."""
        return self.locations.get(name, self.locations[""])


def schedules(match: Match, level: int, spaces: Sequence[FamilySpace]) -> Iterator[Entries]:
    """Yield the schedules of one level, by `spaces`."""
    own = [space for space in spaces if space.family == match.family.name]
    for schedule in match.space(level):
        if all(space.allows(schedule) for space in own):
            yield schedule
    for space in own:
        if space.level == level:
            yield from space.added(match)


def find_space(name: str) -> tuple[FamilySpace, ...]:
    """Return the file of this name, or that of an installed package.

    Raises BraidError where there is neither, or it does not hold.
    """
    return read_space(space_path(name))


def space_path(name: str) -> Path:
    """Return the path of a space file, or that of an installed package. Raises BraidError."""
    path = Path(name)
    if path.suffix in _SUFFIXES or path.exists():
        return path
    found = installed_path(SPACES_GROUP, name)
    if found is None:
        installed = installed_names(SPACES_GROUP)
        known = ", ".join(installed) or "none"
        raise BraidError(
            f"there is no space '{name}': no such file, and installed packages have {known}",
            hint=did_you_mean(name, installed) or f"packages give them by '{SPACES_GROUP}'",
        )
    return found


def read_space(path: Path) -> tuple[FamilySpace, ...]:
    """Return the tables of a file. Raises BraidError where it cannot be read, or does not hold."""
    try:
        text = read_text(path)
        is_json = path.suffix == ".json"
        data: object = parse_json(text, unique=True) if is_json else read_toml(path)
    except (OSError, ValueError) as error:
        raise BraidError(f"cannot read the space '{path}': {reason(error)}") from error
    begin = SourceLocation(str(path), 1, 1)
    if not isinstance(data, dict) or not data:
        raise BraidError("a space is a table for each kernel family", location=begin)
    lines = text.splitlines()
    heads = _heads(lines)
    return tuple(
        _Table(str(path), lines, heads.get(name, 0), name, table).space()
        for name, table in cast("dict[str, object]", data).items()
    )


def _heads(lines: Sequence[str]) -> dict[str, int]:
    """Return in which line each table begins."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines):
        for head in _HEAD.finditer(line):
            found.setdefault((head[1] or head[2] or "").strip(), number)
    return found


@dataclass(frozen=True)
class _Table:
    """The table `name` of a file; `lines` has the line of each key; `start` is its first one."""

    path: str
    lines: Sequence[str]
    start: int
    name: str
    data: object

    def space(self) -> FamilySpace:
        data, text = self.data, repr(self.data)
        if not isinstance(data, dict):
            raise self._error("", f"'{self.name}' is {text}, expected a table")
        return self._space(cast("dict[str, object]", data))

    def _space(self, data: Mapping[str, object]) -> FamilySpace:
        mode, level = data.get("mode", Mode.RESTRICT), data.get("level", 0)
        if mode not in list(Mode):
            known = ", ".join(Mode)
            hint = did_you_mean(str(mode), Mode)
            raise self._error("mode", f"'mode' is {mode!r}, expected one of {known}", hint)
        if not _is_count(level) or not 0 <= cast("int", level) < LEVELS:
            raise self._error("level", f"'level' is {level!r}, expected 0 to {LEVELS - 1}")
        values = {key: self._values(key, data[key]) for key in data if key not in _KEYS}
        schedules = self._schedules(data.get("schedules", []))
        if mode == Mode.RESTRICT and (schedules or "level" in data):
            what = "schedules" if schedules else "level"
            hint = 'say mode = "extend" or mode = "replace"'
            raise self._error(what, f"'{what}' stands in a table that only restricts", hint)
        if not values and not schedules and mode != Mode.REPLACE:
            raise self._error("", "it says nothing, expected entries of schedules", _EXAMPLE)
        added = len(schedules) + (math.prod(map(len, values.values())) if values else 0)
        if mode != Mode.RESTRICT and added > _MOST_ADDED:
            message = f"these are {added:,} schedules, expected at most {_MOST_ADDED:,}"
            raise self._error("", message, "values of all entries are combined")
        named = (name for each in schedules for name in each)
        names = dict.fromkeys((*values, *named, *(key for key in _KEYS if key in data), ""))
        locations = {name: self._location(name) for name in names}
        return FamilySpace(
            current_name(self.name),
            Mode(cast("str", mode)),
            cast("int", level),
            values,
            schedules,
            locations,
        )

    def _values(self, key: str, values: object) -> tuple[int, ...]:
        found = cast("list[object]", values) if isinstance(values, list) else []
        if not found or not all(map(_is_count, found)):
            raise self._error(key, f"'{key}' is {values!r}, expected a list of whole numbers")
        return tuple(dict.fromkeys(cast("list[int]", found)))

    def _schedules(self, values: object) -> tuple[Entries, ...]:
        found = cast("list[object]", values) if isinstance(values, list) else [values]
        for each in found:
            entries = cast("dict[str, object]", each) if isinstance(each, dict) else {}
            if not entries or not all(map(_is_count, entries.values())):
                message = f"'schedules' has {each!r}, expected tables of whole numbers"
                raise self._error("schedules", message)
        return tuple(cast("list[dict[str, int]]", found))

    def _location(self, key: str) -> SourceLocation:
        """Return the location of a key in this table: readers of TOML and JSON report no lines."""
        start = self.start
        for number in range(start, len(self.lines) if key else start):
            line = self.lines[number]
            if number > start and re.match(r"\s*\[\s*[\w\"-]+\s*\]\s*(#.*)?$", line):
                break
            if found := re.search(rf'(?<![\w-])"?{re.escape(key)}"?\s*[=:]', line):
                return SourceLocation(self.path, number + 1, found.start() + 1)
        return SourceLocation(self.path, start + 1, 1)

    def _error(self, key: str, message: str, hint: str | None = None) -> BraidError:
        return BraidError(f"[{self.name}]: {message}", location=self._location(key), hint=hint)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_spaces(
    spaces: Sequence[FamilySpace], families: Sequence[str], matches: Sequence[Match]
) -> Iterator[tuple[str, SourceLocation]]:
    """Check that spaces fit families and the candidates of a model; yield what has no effect there.

    Raises BraidError for a family that is not one of `families`, an entry that its schedules do
    not have, and a value with which none of its candidates has or takes a schedule.
    """
    for space in spaces:
        if space.family not in families:
            raise BraidError(
                f"there is no kernel family '{space.family}' for schedules of this machine",
                location=space.location(),
                hint=did_you_mean(space.family, families) or f"there are {', '.join(families)}",
            )
        own = [match for match in matches if match.family.name == space.family]
        if own:
            _check_entries(space, own)
        else:
            yield f"no kernel of the model is made by '{space.family}'", space.location()


def _check_entries(space: FamilySpace, matches: Sequence[Match]) -> None:
    every = [s for match in matches for level in range(LEVELS) for s in match.space(level)]
    known = sorted({name for schedule in every for name in schedule})
    for name in space.names:
        if name not in known:
            raise BraidError(
                f"schedules of '{space.family}' have no '{name}'",
                location=space.location(name),
                hint=did_you_mean(name, known) or f"they have {', '.join(known) or 'no entries'}",
            )
    taken = every
    if space.mode is not Mode.RESTRICT:
        taken = [schedule for match in matches for schedule in space.added(match)]
    for name, values in space.values.items():
        made = {schedule[name] for schedule in taken}
        for value in values:
            if value not in made:
                raise _refused(space, name, f"{name} = {value}", every)
    defaults = [(match, match.default_schedule()) for match in matches]
    for schedule in space.schedules:
        if not any(match.supports_schedule({**default, **schedule}) for match, default in defaults):
            text = ", ".join(f"{name} = {value}" for name, value in schedule.items())
            raise _refused(space, "schedules", text, every)


def _refused(space: FamilySpace, name: str, text: str, every: Sequence[Entries]) -> BraidError:
    own = sorted({schedule[name] for schedule in every if name in schedule})
    hint = f"its own space has {name} = {', '.join(map(str, own))}" if own else None
    return BraidError(
        f"'{space.family}' makes no kernel of the model with {text}",
        location=space.location(name),
        hint=hint,
    )
