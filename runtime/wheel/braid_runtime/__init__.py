"""Runs models that braid has compiled: `braid_runtime.load("model.braid")`.

The package `braid` runs them: the compiler's if that is installed, else the part that is included
here.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

_OWN = Path(__file__).parent / "lib"
if find_spec("braid") is None:
    sys.path.append(str(_OWN))

from braid import BraidError, Model, __version__, load  # noqa: E402  found by the path above

__all__ = ["BraidError", "Model", "__version__", "headers", "library", "load"]


def headers() -> Path:
    """Return the directory to include `braid/runtime.h` from."""
    from braid.runtime.native_abi import find_headers

    return find_headers()


def library() -> Path:
    """Return the shared library that C programs link; the static one is next to it."""
    from braid.runtime.native_abi import find_library

    return find_library()
