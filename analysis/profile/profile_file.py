"""Reading and merging of profiles that `braid run --profile` writes.

A file is `{"model": …, "inputs": {"x": [1, 3]}, "ops": {name: {"count": 10, "seconds": 0.1,
"layouts": {"acdb,cdba->acdb": {"count": 10, "seconds": 0.1}}}}}`; `inputs` are the shapes of the
run, and `layouts` says the same of each choice of layouts in which a kernel ran. Both may be left
out, as may `seconds` where runs were counted but not timed. `braid profile record` adds `quartiles`
of the seconds in one run of the model, and `runs`, with the same for the model as a whole:
`{"count": 10, "seconds": 0.2, "quartiles": [0.019, 0.02, 0.021]}`. It also adds the `timeline` of
one run, with entries `[name, place, begin, end]` in seconds from its start, and hardware `counters`
of each op, summed over `counted` runs, with the reasons why counters are missing: `{"runs": 3,
"missing": {"cycles": "this machine does not count it"}}`.

For a model with open dims, `sizes` has the number of calls with each combination, and by how much a
count may be too high: `[{"dims": {"batch": 1}, "count": 9, "error": 2}]`. `version` is the version
of the format, by default 1. Readers refuse versions that are later than theirs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, cast

from braid.support.errors import BraidError, SourceLocation
from braid.support.input_files import parse_json, read_text, reason
from braid.support.size_counts import SizeCount, add_size_counts, size_counts_of

_MALFORMED = (LookupError, ValueError, TypeError, AttributeError)

VERSION = 2
"""The version of the format that is written; since 2 it has `sizes`."""


@dataclass(frozen=True)
class OpRecord:
    """The executions of an op, their total seconds, and both by combination of layouts.

    `seconds` is None if times were not measured.
    """

    count: float
    seconds: float | None
    layouts: Mapping[str, "OpRecord"] = field(default_factory=dict[str, "OpRecord"])
    quartiles: tuple[float, float, float] | None = None
    """The quartiles of the seconds in one run of the model, the median in the middle; None where
    only sums are known."""
    counters: Mapping[str, float] = field(default_factory=dict[str, float])
    """The hardware's counts, summed over all runs that were counted."""

    def __post_init__(self) -> None:
        """Raise ValueError where one run would take no finite time."""
        require_finite(self.count, self.seconds)

    def __add__(self, other: "OpRecord") -> "OpRecord":
        """Return the sum of both statistics."""
        layouts = dict(self.layouts)
        for choice, record in other.layouts.items():
            layouts[choice] = layouts[choice] + record if choice in layouts else record
        times = self.seconds, other.seconds
        seconds = None if None in times else sum(time for time in times if time is not None)
        counters = {
            name: self.counters.get(name, 0.0) + other.counters.get(name, 0.0)
            for name in (*self.counters, *other.counters)
        }
        return OpRecord(self.count + other.count, seconds, layouts, counters=counters)

    @staticmethod
    def of(entry: Mapping[str, Any]) -> "OpRecord":
        """Parse an entry of a file; raise ValueError, TypeError or LookupError for another form."""
        layouts = cast(Mapping[str, Any], entry.get("layouts", {}))
        return OpRecord(
            _number(entry["count"]),
            None if "seconds" not in entry else _number(entry["seconds"]),
            {choice: OpRecord.of(each) for choice, each in layouts.items()},
            _quartiles(entry["quartiles"]) if "quartiles" in entry else None,
            {name: _number(each) for name, each in dict(entry.get("counters", {})).items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it stands in a file."""
        whole = int(self.count) if self.count == int(self.count) else self.count
        entry: dict[str, Any] = {"count": whole}
        if self.seconds is not None:
            entry["seconds"] = self.seconds
        if self.quartiles is not None:
            entry["quartiles"] = list(self.quartiles)
        if self.counters:
            entry["counters"] = dict(self.counters)
        if self.layouts:
            entry["layouts"] = {choice: each.to_json() for choice, each in self.layouts.items()}
        return entry


@dataclass(frozen=True)
class Span:
    """The time from `begin` to `end`, in seconds from the start of a run, for which a kernel ran.

    `place` is a thread or a device, and `name` the names of its ops.
    """

    name: str
    place: str
    begin: float
    end: float

    @staticmethod
    def of(row: Sequence[Any]) -> "Span":
        """Parse a row of a file; raise ValueError or TypeError for another form."""
        name, place, begin, end = row
        if not _number(begin) <= _number(end):
            raise ValueError(f"'{name}' ends at {end} s, before it begins")
        return Span(str(name), str(place), _number(begin), _number(end))


@dataclass(frozen=True)
class Counted:
    """The number of runs in which the hardware counted, and why other counters are missing."""

    runs: int = 0
    missing: Mapping[str, str] = field(default_factory=dict[str, str])

    def __add__(self, other: "Counted") -> "Counted":
        """Return the sum; a counter is missing where it is so in both."""
        if not (self.runs and other.runs):
            return self if self.runs else other
        both = {name: why for name, why in self.missing.items() if name in other.missing}
        return Counted(self.runs + other.runs, both)

    @staticmethod
    def of(entry: Mapping[str, Any]) -> "Counted":
        """Parse an entry of a file; raise ValueError, TypeError or LookupError for another form."""
        missing = {str(name): str(why) for name, why in dict(entry["missing"]).items()}
        return Counted(int(_number(entry["runs"])), missing)


@dataclass(frozen=True)
class ProfileRecord:
    """The measurements of a model's ops in runs on inputs of these shapes."""

    model: str
    inputs: Mapping[str, tuple[int, ...]]
    ops: Mapping[str, OpRecord]
    runs: OpRecord | None = None
    """The runs of the model as a whole, by the clock of who called it; None for unknown."""
    timeline: Sequence[Span] = ()
    """The spans of one run in time; empty for unknown."""
    counted: Counted = field(default_factory=Counted)
    sizes: Sequence[SizeCount] = ()
    """How often runs had which sizes of the open dims; empty for unknown, or for none."""

    def to_bytes(self) -> bytes:
        """Return the contents of the file."""
        inputs = {name: list(shape) for name, shape in self.inputs.items()}
        ops = {name: record.to_json() for name, record in self.ops.items()}
        data: dict[str, object] = {"version": VERSION, "model": self.model}
        data |= {"inputs": inputs, "ops": ops}
        if self.sizes:
            data["sizes"] = [each.to_json() for each in self.sizes]
        if self.runs is not None:
            data["runs"] = self.runs.to_json()
        if self.counted.runs:
            data["counted"] = {"runs": self.counted.runs, "missing": dict(self.counted.missing)}
        if self.timeline:
            data["timeline"] = [[s.name, s.place, s.begin, s.end] for s in self.timeline]
        return json.dumps(data, indent=1).encode()

    @staticmethod
    def of(data: Mapping[str, Any]) -> "ProfileRecord":
        """Parse a file's object; raise ValueError, TypeError or LookupError for another form."""
        ops, inputs = data["ops"], cast(Mapping[str, Any], data.get("inputs", {}))
        if not isinstance(ops, dict):
            raise ValueError("'ops' is not an object")
        if _number(version := data.get("version", 1)) > VERSION:
            raise ValueError(f"it has version {version} of the format, this braid reads {VERSION}")
        return ProfileRecord(
            str(data.get("model", "")),
            {name: tuple(int(size) for size in shape) for name, shape in inputs.items()},
            {name: OpRecord.of(entry) for name, entry in cast(dict[str, Any], ops).items()},
            OpRecord.of(cast(dict[str, Any], data["runs"])) if "runs" in data else None,
            tuple(map(Span.of, cast("Sequence[Sequence[Any]]", data.get("timeline", ())))),
            Counted.of(cast(dict[str, Any], data["counted"])) if "counted" in data else Counted(),
            size_counts_of(data.get("sizes", [])),
        )


def read_record(path: Path) -> ProfileRecord:
    """Return the profile in a file of `braid run --profile`.

    Raises `BraidError` where the file cannot be read or has another format.
    """
    location = SourceLocation(str(path))
    try:
        return ProfileRecord.of(cast(dict[str, Any], parse_json(read_text(path))))
    except (OSError, UnicodeDecodeError) as error:
        raise BraidError(f"cannot read profile: {reason(error)}", location=location) from error
    except _MALFORMED as error:
        raise BraidError(
            f"not a profile of braid: {error}",
            location=location,
            hint="expected a file of 'braid run --profile'; tables of other tools are not merged",
        ) from error


def own_record(path: Path) -> ProfileRecord | None:
    """Return the profile in a file of braid, None for another tool's table (`read_profile`).

    Raises `BraidError` where the file cannot be read.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        location = SourceLocation(str(path))
        raise BraidError(f"cannot read profile: {reason(error)}", location=location) from error
    try:
        return ProfileRecord.of(cast(dict[str, Any], parse_json(text)))
    except _MALFORMED:
        return None


def merge_records(paths: Sequence[Path]) -> ProfileRecord:
    """Return the profiles in these files as one: counts and seconds of equal ops add up.

    An op that some of them do not have did not run there. If profiles count sizes, those of runs on
    other shapes are merged without times. Raises `BraidError` as `read_record` does, and for files
    of runs on other machines with other shapes, of models without a common op, or with ops in one
    entry that another file lists separately.
    """
    merged, *others = [read_record(path) for path in paths]
    for path, other in zip(paths[1:], others, strict=True):
        _require_alike(paths[0], merged, path, other)
        if merged.inputs != other.inputs and merged.sizes and other.sizes:
            merged, other = _without_times(merged), _without_times(other)
        ops = dict(merged.ops)
        for name, record in other.ops.items():
            try:
                ops[name] = ops[name] + record if name in ops else record
            except ValueError as error:
                raise BraidError(
                    f"op '{name}': {error}", location=SourceLocation(str(path))
                ) from error
        each = (merged.runs, other.runs)
        runs = None if each[0] is None or each[1] is None else each[0] + each[1]
        merged = ProfileRecord(
            merged.model,
            merged.inputs or other.inputs,
            ops,
            runs,
            merged.timeline or other.timeline,
            merged.counted + other.counted,
            add_size_counts((merged.sizes, other.sizes)),
        )
    return merged


def _without_times(record: ProfileRecord) -> ProfileRecord:
    """Return the counts of a profile, whatever the shapes of its runs."""
    ops = {name: OpRecord(each.count, None) for name, each in record.ops.items()}
    return ProfileRecord(record.model, {}, ops, sizes=record.sizes)


def _require_alike(first: Path, merged: ProfileRecord, path: Path, other: ProfileRecord) -> None:
    location = SourceLocation(str(path))
    counts_sizes = bool(merged.sizes and other.sizes)
    if counts_sizes and _dims(merged) != _dims(other):
        raise BraidError(
            f"the runs have sizes of {_dims(other)}, but those of '{first}' of {_dims(merged)}",
            location=location,
            hint="are they of one model?",
        )
    differ = merged.inputs != other.inputs and not counts_sizes
    if merged.inputs and other.inputs and differ:
        raise BraidError(
            f"the runs had inputs {_shapes(other)}, but those of '{first}' {_shapes(merged)}",
            location=location,
            hint="times of other shapes do not add up; use a profile for each",
        )
    if merged.ops and other.ops and not merged.ops.keys() & other.ops.keys():
        raise BraidError(
            f"the profile has no op of '{first}'", location=location, hint="are they of one model?"
        )
    together = {part: name for name in merged.ops for part in name.split("+")}
    for name in other.ops:
        for part in name.split("+"):
            if (known := together.get(part, name)) != name:
                raise BraidError(
                    f"op '{part}' is counted as '{name}', but in '{first}' as '{known}'",
                    location=location,
                    hint="take both profiles of the model compiled with the same options",
                )


def _dims(record: ProfileRecord) -> str:
    return ", ".join(name for name, _ in record.sizes[0].sizes)


def _shapes(record: ProfileRecord) -> str:
    return ", ".join(f"{name}={','.join(map(str, s))}" for name, s in record.inputs.items())


def require_finite(count: float, seconds: float | None) -> None:
    """Raise ValueError for more seconds than a float holds, in all or for one of `count` runs."""
    if seconds is None:
        return
    if seconds == inf or (count and seconds / count == inf):
        raise ValueError(f"{seconds:g} s of {count:g} runs are more than a float holds for one")


def _quartiles(value: object) -> tuple[float, float, float]:
    low, median, high = map(_number, cast("Sequence[object]", value))
    if not low <= median <= high:
        raise ValueError(f"the quartiles {low:g}, {median:g} and {high:g} are not in order")
    return low, median, high


def _number(value: object) -> float:
    if isinstance(value, bool):
        raise ValueError(f"{value} is neither a count nor a time")
    number = float(cast(float, value))
    if not (0 <= number < inf):
        raise ValueError(f"{value} is neither a count nor a time")
    return number
