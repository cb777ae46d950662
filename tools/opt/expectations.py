"""`--verify-diagnostics`: `expected-error` comments, as in MLIR's own tests.

    // expected-error @+1 {{part of the message}}
    // expected-note-re @below {{operand {{#[0-9]+}} is}}

The kinds are error, warning, remark and note; the places `@+n`, `@-n`, `@above` and `@below` (the
nearest line that is not itself such a comment), `@unknown`, or none for the comment's own line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from braid.support.diagnostics import Diagnostic, Severity
from braid.support.errors import SourceLocation

_MARKER = re.compile(r"//.*\bexpected-(error|warning|remark|note)")
_EXPECTATION = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?\s*"
    r"(?:@(?P<place>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass(frozen=True)
class Expectation:
    """A diagnostic that has to come; `line` is None if it has no location."""

    severity: Severity
    line: int | None
    text: str
    pattern: re.Pattern[str]
    comment: SourceLocation

    def matches(self, severity: Severity, line: int | None, message: str) -> bool:
        """Return whether this is the diagnostic that was expected."""
        return (
            severity == self.severity
            and line == self.line
            and self.pattern.search(message) is not None
        )


def check_diagnostics(
    emitted: Sequence[Diagnostic],
    text: str,
    file: str,
    line_offset: int,
    *,
    only_expected: bool = False,
) -> list[Diagnostic]:
    """Return errors for diagnostics that are not expected, and for expectations not met.

    `text` begins after `line_offset` lines of `file`. A note of an error counts on its own, and
    every expectation is used once. With `only_expected`, other diagnostics may be emitted as well.
    """
    pending, problems = parse_expectations(text, file, line_offset)
    for severity, message, location in _flatten(emitted):
        line = None if location is None or not location.line else location.line
        here = location is None or location.file == file
        match = next((e for e in pending if here and e.matches(severity, line, message)), None)
        if match is not None:
            pending.remove(match)
        elif not only_expected:
            problems.append(Diagnostic("error", f"unexpected {severity}: {message}", location))
    for expectation in pending:
        message = f'expected {expectation.severity} "{expectation.text}" was not produced'
        problems.append(Diagnostic("error", message, expectation.comment))
    return problems


def parse_expectations(
    text: str, file: str, line_offset: int
) -> tuple[list[Expectation], list[Diagnostic]]:
    """Return the expectations in `text`, and errors for the comments that are malformed."""
    lines = text.split("\n")
    is_comment = [_MARKER.search(line) is not None for line in lines]
    expectations: list[Expectation] = []
    problems: list[Diagnostic] = []
    for index, line in enumerate(lines):
        if not is_comment[index]:
            continue
        location = SourceLocation(file, index + 1 + line_offset, line.index("//") + 1)
        match = _EXPECTATION.search(line)
        if match is None:
            problems.append(Diagnostic("error", "malformed expectation", location))
            continue
        target = _target_line(match["place"], index, is_comment)
        expectations.append(
            Expectation(
                match["severity"],  # pyright: ignore[reportArgumentType]
                None if target is None else target + 1 + line_offset,
                match["text"],
                _pattern(match["text"], is_regex=match["regex"] is not None),
                location,
            )
        )
    return expectations, problems


def _target_line(place: str | None, index: int, is_comment: Sequence[bool]) -> int | None:
    if place is None:
        return index
    if place == "unknown":
        return None
    if place in ("above", "below"):
        step = 1 if place == "below" else -1
        index += step
        while 0 <= index < len(is_comment) and is_comment[index]:
            index += step
        return index
    return index + int(place)


def _pattern(text: str, *, is_regex: bool) -> re.Pattern[str]:
    """Return `text` as a pattern.

    With `is_regex`, the parts in double braces are regular expressions.
    """
    if not is_regex:
        return re.compile(re.escape(text))
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile(
        "".join(f"(?:{part})" if i % 2 else re.escape(part) for i, part in enumerate(parts))
    )


def _flatten(
    diagnostics: Sequence[Diagnostic],
) -> list[tuple[Severity, str, SourceLocation | None]]:
    flat: list[tuple[Severity, str, SourceLocation | None]] = []
    for diagnostic in diagnostics:
        flat.append((diagnostic.severity, diagnostic.message, diagnostic.location))
        flat.extend(("note", note.message, note.location) for note in diagnostic.notes)
    return flat
