"""Reading of execution counts and times of ops from profiles in three formats.

- braid's own, written by `braid run --profile`: `{"ops": {name: {"count": 10, "seconds": 0.1}}}`;
- a table of TensorFlow's profiler as CSV, of ops ("Operation Name", "#Occurrences", "Total time
  (us)") or of input ops ("Input Op", "Count", "Total Time (in ms)"); the title of the time names
  its unit, and a table of counts alone has no such column;
- the same as JSON: a data table with `cols` and `rows`, or an array of such tables. The first table
  of an array decides what all its tables count: TensorFlow writes its op table twice, with idle
  time and without.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from braid.analysis.profile.profile_file import ProfileRecord, require_finite
from braid.support.errors import BraidError, SourceLocation
from braid.support.input_files import parse_json, read_text, reason
from braid.support.size_counts import SizeCount

_UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}

_NAMES = ("operation name", "op name", "operation", "name", "input op")

_MALFORMED = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, csv.Error)


@dataclass(frozen=True)
class OpStatistics:
    """The number of executions of an op, and their total seconds, None if not measured."""

    count: float
    seconds: float | None
    layouts: Mapping[str, "OpStatistics"] = field(default_factory=dict[str, "OpStatistics"])
    """Statistics by choice of layouts, as far as the profile has them (see `profile_record`)."""

    names: tuple[str, ...] = ()
    """Names of all ops of the model that were measured as this one kernel."""

    def __post_init__(self) -> None:
        """Raise ValueError where one run would take no finite time."""
        require_finite(self.count, self.seconds)


@dataclass(frozen=True)
class Profile:
    """Statistics by stable name of the op.

    `counts_iterations` says whether the op that represents a loop's iterations counts all of them,
    or all but the first, as TensorFlow's NextIteration does.
    """

    ops: Mapping[str, OpStatistics]
    counts_iterations: bool
    sizes: Sequence[SizeCount] = ()
    """How often runs had which sizes of open dims, the most frequent first; empty for unknown."""

    def find(self, names: Iterable[str]) -> OpStatistics | None:
        """Return the statistics of the first of `names` that has any."""
        return next((self.ops[name] for name in names if name in self.ops), None)

    def kernels(self, names: Sequence[str]) -> list[OpStatistics]:
        """Return the kernels measured under `names`: one kernel for all names, or several, each
        once."""
        if (whole := self.ops.get("+".join(names))) is not None:
            return [whole]
        found = [self.ops[name] for name in names if name in self.ops]
        return list({each.names: each for each in found}.values())


def read_profile(path: Path) -> Profile:
    """Return the profile in the file at `path`, whichever format it has.

    Raises `BraidError` if the file cannot be read or its format is unknown.
    """
    location = SourceLocation(str(path))
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BraidError(f"cannot read profile: {reason(error)}", location=location) from error
    try:
        if not text.lstrip().startswith(("{", "[")):
            return _from_rows(list(csv.reader(io.StringIO(text))))
        data = parse_json(text)
        if isinstance(data, list):
            return _from_data_tables(cast(list[Any], data))
        fields = cast(dict[str, Any], data)
        if "ops" in fields:
            return _from_braid(ProfileRecord.of(fields))
        return _from_data_tables([fields])
    except _MALFORMED as error:
        raise BraidError(
            f"not a profile: {error}",
            location=location,
            hint="expected a file of 'braid run --profile', or TensorFlow's op statistics "
            "or input-op statistics (CSV or JSON)",
        ) from error


def _from_braid(profile: ProfileRecord) -> Profile:
    result: dict[str, OpStatistics] = {}
    for joined, record in profile.ops.items():
        layouts = {c: OpStatistics(each.count, each.seconds) for c, each in record.layouts.items()}
        names = tuple(joined.split("+"))
        statistics = OpStatistics(record.count, record.seconds, layouts, names)
        # A kernel that replaces several ops of the model has all of their names.
        for name in (joined, *names):
            result.setdefault(name, statistics)
    return Profile(result, counts_iterations=True, sizes=profile.sizes)


def _from_data_tables(tables: Sequence[Mapping[str, Any]]) -> Profile:
    """Return the tables of ops among `tables`; of equal names the first table counts."""
    ops: dict[str, OpStatistics] = {}
    read = [_rows(table) for table in tables]
    of_ops = [rows for rows in read if any(title in _NAMES for title in map(_normalized, rows[0]))]
    if not of_ops:
        raise ValueError(f"none of the {len(read)} tables has a column of op names")
    for rows in of_ops:
        for name, statistics in _from_rows(rows).ops.items():
            ops.setdefault(name, statistics)
    return Profile(ops, counts_iterations=False)


def _rows(table: Mapping[str, Any]) -> list[list[str]]:
    if not isinstance(table, dict):
        raise ValueError(f"{table} is not a table, an object with 'cols' and 'rows'")
    header = [str(column.get("label") or column["id"]) for column in table["cols"]]
    return [header, *([_cell(cell) for cell in row["c"]] for row in table["rows"])]


def _cell(cell: object) -> str:
    value = cast(dict[str, Any], cell).get("v") if isinstance(cell, dict) else cell
    return str(value)


def _from_rows(rows: Sequence[Sequence[str]]) -> Profile:
    if not rows:
        raise ValueError("the file is empty")
    header = [_normalized(title) for title in rows[0]]
    name = _column(header, lambda t: t in _NAMES)
    count = _column(header, lambda t: "occurrences" in t or t == "count")
    total = next(
        (i for i, t in enumerate(header) if t.startswith("total time") and "%" not in t), None
    )
    scale = 1.0 if total is None else _seconds_per_unit(rows[0][total])
    ops: dict[str, OpStatistics] = {}
    for row in rows[1:]:
        if any(field.strip() for field in row):
            known = ops.get(row[name], OpStatistics(0.0, 0.0))
            seconds = None if total is None else scale * _number(row[total])
            if seconds is not None and known.seconds is not None:
                seconds += known.seconds
            # An op has a row for each device that took part in running it.
            counted = max(known.count, _number(row[count]))
            ops[row[name]] = OpStatistics(counted, seconds, names=(row[name],))
    return Profile(ops, counts_iterations=False)


def _seconds_per_unit(title: str) -> float:
    """Return the seconds in the unit that the title of a column names: `(us)`, `(in ms)`."""
    unit = re.search(r"\((?:in\s+)?([^()\s]*)\)", title.lower())
    if unit is None or unit[1] not in _UNITS:
        raise ValueError(f"the column '{title}' names no unit of time ({', '.join(_UNITS)})")
    return _UNITS[unit[1]]


def _normalized(title: str) -> str:
    return " ".join(title.lower().replace("#", " ").replace("_", " ").split())


def _column(header: Sequence[str], matches: Callable[[str], bool]) -> int:
    for index, title in enumerate(header):
        if matches(title):
            return index
    raise ValueError(f"a column is missing; there are {list(header)}")


def _number(text: str | float) -> float:
    number = float(text.replace(",", "") if isinstance(text, str) else text)
    if not (0 <= number < math.inf):
        raise ValueError(f"{text} is neither a count nor a time")
    return number
