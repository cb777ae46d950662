"""Types of arguments, refused before anything is measured and not when it is to be kept."""

from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path


def output_file(text: str) -> Path:
    """Return the path of a file that can be written, in a folder that is made where there is
    none."""
    path = Path(text)
    is_new = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise ArgumentTypeError(f"cannot write '{text}': {error.strerror}") from None
    if is_new:
        path.unlink()
    return path


def count(text: str) -> int:
    """Return a number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"expected a number of at least 1, got '{text}'")
    return int(text)


def no_case(text: str, names: Sequence[str]) -> str:
    """Return a message that no case matches `text`, with similar names."""
    shown = ", ".join(f"'{name}'" for name in names[:3]) + (", …" if len(names) > 3 else "")
    return f"'{text}' names none of {len(names)} cases{shown and ': '}{shown}"
