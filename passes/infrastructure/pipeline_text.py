"""Errors within the text of a pipeline."""

from braid.support.errors import BraidError, SourceLocation

PIPELINE_FILE = "<pass-pipeline>"
"""What a diagnostic about the text of a pipeline names as the file."""


def error_at(text: str, position: int, message: str, hint: str | None = None) -> BraidError:
    """The error about what stands at `position`, counted from 0, of the pipeline `text`."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return BraidError(message, location=SourceLocation(PIPELINE_FILE, line, column), hint=hint)
