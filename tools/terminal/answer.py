"""Give the answer of a command: text for people, or one JSON document for programs."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from braid.support.diagnostics import Diagnostic
from braid.support.errors import BraidError, SourceLocation


def _print_nothing() -> None:
    """Print nothing: the written files are the result."""


@dataclass(frozen=True)
class Answer:
    """The result of a command.

    `data` is the field `result` of the document of `--json`, as `output.schema.json` describes it
    for each command; `show` prints the same for people. `status` is the exit status, which is 1
    for a check that has failed, and where there is an `error` besides.
    """

    data: Mapping[str, object]
    show: Callable[[], None] = _print_nothing
    status: int = 0
    error: BraidError | None = field(default=None, kw_only=True)


def document(
    version: str,
    command: str,
    result: Mapping[str, object] | None,
    status: int,
    diagnostics: Sequence[Diagnostic],
) -> str:
    """Return the document of `--json`, ending in a newline: its fields are those of all commands.

    Numbers that JSON does not have, infinity and NaN, become null.
    """
    content = {
        "braid": version,
        "command": command,
        "ok": status == 0,
        "result": result,
        "diagnostics": [plain(each) for each in diagnostics],
    }
    return json.dumps(_finite(content), indent=1, allow_nan=False, default=str) + "\n"


def plain(diagnostic: Diagnostic) -> dict[str, object]:
    """Return a diagnostic as a JSON object; what is unknown is null."""
    return {
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        **_place(diagnostic.location),
        "notes": [{"message": note.message, **_place(note.location)} for note in diagnostic.notes],
    }


def _place(location: SourceLocation | None) -> dict[str, object]:
    """Return the place of a message; unknown parts are null."""
    if location is None:
        return {"file": None, "line": None, "column": None}
    return {
        "file": location.file,
        "line": location.line or None,
        "column": location.column or None,
    }


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in cast("Mapping[Any, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast("Sequence[object]", value)]
    return value
