"""The files that CMake builds from the C sources of a room."""

from collections.abc import Iterable, Mapping, Sequence
from ctypes import CDLL
from pathlib import Path
from typing import Any

from braid.support.errors import BraidError


def find_built(name: str, packages: Iterable[str]) -> Path:
    """Return the path of a built file: in one of `packages`, or the checkout's `build/`.

    `packages` are the directories of the room that the file belongs to. Where there are several
    files, as in an editable install whose C sources are being worked on, the newest is taken.

    Raises:
        BraidError: there is none.

    """
    places = [Path(directory) for directory in packages]
    builds = [place.resolve().parent / "build" for place in places]
    places += [*builds, *(build / "wheel" for build in builds)]
    found = [place / name for place in places if (place / name).is_file()]
    if not found:
        raise BraidError(
            f"'{name}', a native part of braid, is not built",
            hint="in a checkout run 'make build', or 'cmake -B build && cmake --build build'; "
            "elsewhere install braid again",
        )
    return max(found, key=lambda path: path.stat().st_mtime)


def declare(library: CDLL, signatures: Mapping[str, tuple[Any, Sequence[Any]]]) -> None:
    """Set the result and argument types of functions by name.

    Raises:
        BraidError: the library has no such function: it was built from older sources.

    """
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise BraidError(
                f"'{library._name}' has no function '{name}': it was built from older sources",
                hint="run 'make build', or 'cmake -B build && cmake --build build'",
            ) from None
        function.restype = result
        function.argtypes = arguments
