"""How a diagnostic looks in a terminal: one line, the source line, and a caret below it."""

from collections.abc import Mapping, Sequence

from braid.support.diagnostics import Diagnostic
from braid.support.errors import SourceLocation

Sources = Mapping[str, Sequence[str]]
"""Lines of the files that are known, by name."""
_LONGEST = 400
"""Characters of a line that are shown."""


def render_diagnostic(diagnostic: Diagnostic, sources: Sources) -> str:
    """`diagnostic` with its notes and hint, and with source lines where `sources` has them."""
    lines = _render(diagnostic.severity, diagnostic.message, diagnostic.location, sources)
    for note in diagnostic.notes:
        lines += _render("note", note.message, note.location, sources)
    if diagnostic.hint:
        lines.append(f"hint: {diagnostic.hint}")
    return "\n".join(lines)


def _render(
    severity: str, message: str, location: SourceLocation | None, sources: Sources
) -> list[str]:
    place = "braid-opt" if location is None else str(location)
    lines = [f"{place}: {severity}: {message}"]
    if location is None or not location.line:
        return lines
    source = sources.get(location.file, ())
    if location.line <= len(source):
        text, column = _around(source[location.line - 1], location.column)
        lines.append(text)
        if column:
            # Tabs are kept, so that the caret stands below its character.
            prefix = text[: column - 1].ljust(column - 1)
            lines.append("".join("\t" if c == "\t" else " " for c in prefix) + "^")
    return lines


def _around(text: str, column: int) -> tuple[str, int]:
    """The part of a very long line that is around `column`, and the column in it."""
    if len(text) <= _LONGEST:
        return text, column
    begin = max(0, min(column - _LONGEST // 2, len(text) - _LONGEST))
    return text[begin : begin + _LONGEST], max(0, column - begin)
