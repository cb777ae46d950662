"""Arguments of the Python API that are of another kind than their types say."""

import os
from collections.abc import Mapping
from types import MappingProxyType

from braid.support.errors import BraidError

_NONE: Mapping[str, object] = MappingProxyType({})


def check_kinds(
    *,
    texts: Mapping[str, object] = _NONE,
    paths: Mapping[str, object] = _NONE,
    flags: Mapping[str, object] = _NONE,
) -> None:
    """Raises BraidError unless these are texts, paths, and True or False, or None."""
    expected = (
        (texts, str, "text"),
        (paths, (str, os.PathLike), "the path of a file"),
        (flags, bool, "True or False"),
    )
    for values, kinds, what in expected:
        for name, value in values.items():
            if value is not None and not isinstance(value, kinds):
                raise BraidError(f"{name} is {value!r:.200}, expected {what}")
