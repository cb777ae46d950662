"""Vendors' shared libraries that compiled code calls: where they are, and loading them."""

import ctypes
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from braid.support.errors import BraidError

ONEDNN = "libdnnl.so.3"
"""oneDNN 3; its C interface is the same in all versions of that number."""

OPENMP = "libgomp.so.1"
"""What oneDNN has its threads from."""

_EXTRAS = {ONEDNN: "onednn"}
"""Which extra of braid brings a library."""


def find_library(name: str) -> Path | None:
    """The file of this name in this Python's environment; None for the system's, or where not."""
    places = (Path(sys.prefix) / "lib", Path(sys.base_prefix) / "lib")
    return next((place / name for place in places if (place / name).is_file()), None)


@cache
def loaded_library(name: str) -> ctypes.CDLL | None:
    """The library, whose symbols code that is loaded later finds; None where it is not here."""
    try:
        return ctypes.CDLL(str(find_library(name) or name), mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return None


def need_libraries(names: Iterable[str], what: str) -> None:
    """Load libraries for `what`, which calls them.

    Raises:
        BraidError: one is not installed; the hint says how it is.

    """
    for name in names:
        if loaded_library(name) is None:
            raise missing_library(name, what)


def missing_library(name: str, what: str) -> BraidError:
    """What to say where `what` needs a library that cannot be loaded."""
    extra = _EXTRAS.get(name)
    install = f"pip install 'braid[{extra}]'" if extra else f"install what has '{name}'"
    return BraidError(
        f"{what} needs the library '{name}', which cannot be loaded",
        hint=f"{install}, or put its directory into LD_LIBRARY_PATH; braid compile "
        "--kernels=generated makes code that needs none",
    )
