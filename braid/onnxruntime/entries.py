"""Options of `braid.compile` as texts: the entries of a session whose keys begin with `braid.`."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from braid.driver.options import options_of
from braid.onnxruntime.errors import InvalidArgument
from braid.support.option_names import former_keywords

_Read = Callable[[str], object]
_FLAGS = {"1": True, "true": True, "0": False, "false": False}


def _flag(text: str) -> bool:
    return _FLAGS[text.lower()]


def _size(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(_size(each.strip()) for each in text.split(",") if text)


def _size_or_dim(text: str) -> int | str:
    if text.isdecimal():
        return int(text)
    if not text or text[0] in "+-.0123456789":
        raise ValueError(text)
    return text


def _numbers(text: str) -> object:
    values: list[object] = json.loads(f"[{text}]")
    return values[0] if len(values) == 1 else values


_PLAIN: Mapping[type, tuple[_Read, str]] = {
    bool: (_flag, "1 or 0"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    str: (str, "text"),
    Path: (Path, "a path"),
}
_BY_NAME: Mapping[str, tuple[_Read, str]] = {
    "shapes": (_sizes, "NAME=SIZES for each input, such as 'x=1,3,8;mask=1,8'"),
    "dims": (_size_or_dim, "DIM=SIZE for each dim, such as 'batch=4;length=128'"),
    "constants": (_numbers, "NAME=NUMBERS for each input, such as 'rate=16000'"),
    "shape_buckets": (_sizes, "DIM=SIZES for each dim, such as 'batch=1,2,4;length=64'"),
    "shape_bounds": (_size, "DIM=SIZE for each dim, such as 'batch=8'"),
}
"""Options with a value for each name: how one is read, and the text that is expected."""
OWN_KEYS: Mapping[str, str] = {
    f"braid.{key}": name
    for name, option in options_of().items()
    for key in (name, *former_keywords(name))
    if name in _BY_NAME or (option.kind in _PLAIN and not option.repeats)
}
"""Keywords of the options that have a text, by the keys of their entries."""
ABOUT_THE_MODEL = frozenset(_BY_NAME)
"""Keywords of the options that only a model can validate."""


def read_entry(key: str, text: str) -> object:
    """Return the value of the option that an entry is.

    Raises:
        InvalidArgument: the text is no such value.

    """
    name = OWN_KEYS[key]
    kind = options_of()[name].kind
    read, expected = _BY_NAME[name] if name in _BY_NAME else _PLAIN[kind or str]
    try:
        return _by_name(text, read) if name in _BY_NAME else read(text)
    except (ValueError, KeyError, RecursionError) as error:
        raise InvalidArgument(
            f"configuration '{key}' is {text!r:.200}, expected {expected}"
        ) from error


def _by_name(text: str, read: _Read) -> dict[str, object]:
    """Return values by name. Raises ValueError for a missing name or value, and a repeated name."""
    values: dict[str, object] = {}
    for part in filter(None, (each.strip() for each in text.split(";"))):
        name, separator, value = part.rpartition("=")
        if not separator or not name or name in values:
            raise ValueError(part)
        values[name] = read(value.strip())
    return values
