"""Sizes in bytes as people write them: `64MiB`, `512KiB`, `1.5GB`, `4096`."""

import re
from math import floor

_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
}
_SIZE = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,18})?)\s*(?P<unit>[a-z]*)", re.IGNORECASE)


def parse_size(text: int | str) -> int:
    """Return the bytes that `text` states: a number, or one with a unit, binary (KiB) or decimal
    (kB).

    Raises ValueError for anything else, negative numbers and fractions of a byte included.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        if text < 0:
            raise ValueError(f"is {text}, expected a size of at least 0 bytes")
        return text
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  a user's
        raise ValueError(f"is {text!r}, expected bytes or text such as 64MiB")
    match = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(match["unit"].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"'{text[:40]}' is not a size; write bytes, or a unit as in 64MiB or 64MB")
    size = float(match["number"]) * unit if "." in match["number"] else int(match["number"]) * unit
    if size != floor(size):
        raise ValueError(f"'{text}' is not a whole number of bytes")
    return int(size)


def format_size(size: int) -> str:
    """Return `size` in the largest binary unit that it reaches, with three digits: `1.50 MiB`."""
    scaled, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if scaled < 1024:
            break
        scaled, unit = scaled / 1024, larger
    return f"{size} B" if unit == "B" else f"{scaled:.3g} {unit}"
