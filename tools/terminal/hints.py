"""Hints for errors that name a file, where the error has none."""

import errno
import os
from pathlib import Path

from braid.support.errors import BraidError, Note, SourceLocation, did_you_mean
from braid.support.input_files import open_regular

_LONGEST_LINE = 200
_ARTIFACT = b"BRAIDART"
_ZIP = b"PK\x03\x04"


def with_way_out(error: BraidError) -> BraidError:
    """Return the error with a hint, made of why the system does not read a file, or of the file.

    Errors with a hint, and unknown ones, do not change. But a file that is no ONNX model may be of
    another kind, and then the message names that.
    """
    location, notes = error.location, error.notes
    cause = error.__cause__ or error.__context__
    is_no_model = location is not None and error.message.startswith("not an ONNX model")
    hint = _hint_of_file(Path(location.file)) if is_no_model and location is not None else None
    if hint is None and error.hint is not None:
        return error
    if hint is None and isinstance(cause, OSError) and cause.filename is not None:
        hint = _hint_of_system(cause)
    elif hint is None and location is not None and location.line:
        notes = (*notes, *_line(location))
        hint = "correct the file there, or write it again with the program that it comes from"
    if hint is None:
        return error
    return BraidError(error.message, location=location, hint=hint, notes=notes)


def _hint_of_system(error: OSError) -> str | None:
    path = Path(os.fsdecode(error.filename))
    if error.errno == errno.ENOENT:
        try:
            known = [each.name for each in path.parent.iterdir()]
        except OSError:
            return f"there is no directory '{path.parent}'"
        similar = did_you_mean(path.name, known)
        return similar or f"look into '{path.parent.absolute()}', where it is expected"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"give yourself the permission to read it: chmod u+r {path}"
    if error.errno == errno.EISDIR:
        return "name a file in it"
    return None


def _line(location: SourceLocation) -> tuple[Note, ...]:
    """Return a note with the line where something is wrong."""
    try:
        with open_regular(location.file) as file:
            lines = (line for number, line in enumerate(file, 1) if number == location.line)
            text = next(lines, b"").decode(errors="replace").strip()
    except OSError:
        return ()
    return (Note(f"the line is: {text:.{_LONGEST_LINE}}"),) if text else ()


def _hint_of_file(path: Path) -> str | None:
    """Return the hint for a file whose content does not match its name."""
    try:
        with open_regular(path) as file:
            start = file.read(512)
    except OSError:
        return None
    if start.startswith(_ARTIFACT):
        return "it is an artifact: give it a name that ends in .braid, and run it"
    if start.startswith(_ZIP):
        return "it is a ZIP archive, as PyTorch writes: export the module with torch.onnx.export"
    if start and all(byte >= 32 or byte in b"\t\r\n" for byte in start):
        return "it is text, expected ONNX's binary format: export the model again"
    return None
