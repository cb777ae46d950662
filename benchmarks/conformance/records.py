"""Outcomes kept as JSON Lines: a run that was cut off goes on where it was.

A line holds `commit`, `executor`, `case`, `status` and `reason`. Only lines of the present commit
count; those of a modified tree never do, since the modifications may differ by now.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.conformance.outcomes import Outcome, Status

CHANGED = "-dirty"


def read_records(path: Path, commit: str, executor: str) -> dict[str, Outcome]:
    """Return the outcomes of an executor at a commit, by case; the last line of a case counts.

    A line that was cut off is left out. Nothing is read for a tree with changes.
    """
    if commit.endswith(CHANGED) or not path.exists():
        return {}
    entries = filter(None, map(_entry, path.read_text(encoding="utf-8").splitlines()))
    return {
        entry["case"]: Outcome(entry["case"], Status(entry["status"]), entry["reason"])
        for entry in entries
        if (entry["commit"], entry["executor"]) == (commit, executor)
    }


def _entry(line: str) -> dict[str, str] | None:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def recorded(
    outcomes: Iterable[Outcome], path: Path, commit: str, executor: str
) -> Iterator[Outcome]:
    """Return the same outcomes, each of them written to the end of the file before it is given
    on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell() and not _ends_a_line(file.fileno(), file.tell()):
            file.write(b"\n")
        for outcome in outcomes:
            entry = {"commit": commit, "executor": executor, "case": outcome.name}
            entry |= {"status": str(outcome.status), "reason": outcome.reason}
            file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            yield outcome


def _ends_a_line(descriptor: int, size: int) -> bool:
    return os.pread(descriptor, 1, size - 1) == b"\n"
