"""Reading and merging of profiles that `braid run --profile` writes.

A file is `{"model": …, "inputs": {"x": [1, 3]}, "ops": {name: {"count": 10, "seconds": 0.1,
"layouts": {"acdb,cdba->acdb": {"count": 10, "seconds": 0.1}}}}}`; `inputs` are the shapes of the
run, and `layouts` says the same of each choice of layouts in which a kernel ran. Both may be left
out, as may `seconds` where runs were counted but not timed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, cast

from braid.support.errors import BraidError, SourceLocation
from braid.support.input_files import parse_json, read_text, reason

_MALFORMED = (LookupError, ValueError, TypeError, AttributeError)


@dataclass(frozen=True)
class OpRecord:
    """The executions of an op, their total seconds, and both by combination of layouts.

    `seconds` is None where times were not measured.
    """

    count: float
    seconds: float | None
    layouts: Mapping[str, "OpRecord"] = field(default_factory=dict[str, "OpRecord"])

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
        return OpRecord(self.count + other.count, seconds, layouts)

    @staticmethod
    def of(entry: Mapping[str, Any]) -> "OpRecord":
        """Parse an entry of a file; raise ValueError, TypeError or LookupError for another form."""
        layouts = cast(Mapping[str, Any], entry.get("layouts", {}))
        return OpRecord(
            _number(entry["count"]),
            None if "seconds" not in entry else _number(entry["seconds"]),
            {choice: OpRecord.of(each) for choice, each in layouts.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it stands in a file."""
        whole = int(self.count) if self.count == int(self.count) else self.count
        entry: dict[str, Any] = {"count": whole}
        if self.seconds is not None:
            entry["seconds"] = self.seconds
        if self.layouts:
            entry["layouts"] = {choice: each.to_json() for choice, each in self.layouts.items()}
        return entry


@dataclass(frozen=True)
class ProfileRecord:
    """The measurements of a model's ops in runs on inputs of these shapes."""

    model: str
    inputs: Mapping[str, tuple[int, ...]]
    ops: Mapping[str, OpRecord]

    def to_bytes(self) -> bytes:
        """Return the contents of the file."""
        inputs = {name: list(shape) for name, shape in self.inputs.items()}
        ops = {name: record.to_json() for name, record in self.ops.items()}
        return json.dumps({"model": self.model, "inputs": inputs, "ops": ops}, indent=1).encode()

    @staticmethod
    def of(data: Mapping[str, Any]) -> "ProfileRecord":
        """Parse a file's object; raise ValueError, TypeError or LookupError for another form."""
        ops, inputs = data["ops"], cast(Mapping[str, Any], data.get("inputs", {}))
        if not isinstance(ops, dict):
            raise ValueError("'ops' is not an object")
        return ProfileRecord(
            str(data.get("model", "")),
            {name: tuple(int(size) for size in shape) for name, shape in inputs.items()},
            {name: OpRecord.of(entry) for name, entry in cast(dict[str, Any], ops).items()},
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


def merge_records(paths: Sequence[Path]) -> ProfileRecord:
    """Return the profiles in these files as one: counts and seconds of equal ops add up.

    An op that some of them do not have did not run there. Raises `BraidError` as `read_record`
    does, and for files of runs on other shapes, of a model that shares no op with the first one,
    or in which ops stand together that stand apart in another one.
    """
    merged, *others = [read_record(path) for path in paths]
    for path, other in zip(paths[1:], others, strict=True):
        _require_alike(paths[0], merged, path, other)
        ops = dict(merged.ops)
        for name, record in other.ops.items():
            try:
                ops[name] = ops[name] + record if name in ops else record
            except ValueError as error:
                raise BraidError(
                    f"op '{name}': {error}", location=SourceLocation(str(path))
                ) from error
        merged = ProfileRecord(merged.model, merged.inputs or other.inputs, ops)
    return merged


def _require_alike(first: Path, merged: ProfileRecord, path: Path, other: ProfileRecord) -> None:
    location = SourceLocation(str(path))
    if merged.inputs and other.inputs and merged.inputs != other.inputs:
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


def _shapes(record: ProfileRecord) -> str:
    return ", ".join(f"{name}={','.join(map(str, s))}" for name, s in record.inputs.items())


def require_finite(count: float, seconds: float | None) -> None:
    """Raise ValueError for more seconds than a float holds, in all or for one of `count` runs."""
    if seconds is None:
        return
    if seconds == inf or (count and seconds / count == inf):
        raise ValueError(f"{seconds:g} s of {count:g} runs are more than a float holds for one")


def _number(value: object) -> float:
    if isinstance(value, bool):
        raise ValueError(f"{value} is neither a count nor a time")
    number = float(cast(float, value))
    if not (0 <= number < inf):
        raise ValueError(f"{value} is neither a count nor a time")
    return number
