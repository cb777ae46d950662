"""Shared libraries: those that CMake builds from the C sources of a package, and vendors'
libraries."""

import ctypes
import sys
from collections.abc import Iterable, Mapping, Sequence
from ctypes import CDLL, c_char_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from braid.support.distribution import install_command
from braid.support.errors import BraidError
from braid.support.option_names import option_text


def find_built(name: str, packages: Iterable[str]) -> Path:
    """Return the path of a built file: in one of `packages`, or the checkout's `build/`.

    `packages` are the directories of the package that the file belongs to. Where there are several
    files, as in an editable install whose C sources are being worked on, the newest is taken.

    Raises:
        BraidError: the library is missing.

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


def digest_of_sources(directory: Path) -> str:
    """Return the digest of the C sources below `src` and `include` of a directory.

    This equals what `braid_digest_sources` in CMakeLists.txt puts into the libraries.
    """
    from hashlib import sha256  # needs OpenSSL; wheels have no sources

    found = (file for kind in ("src", "include") for file in (directory / kind).rglob("*.[ch]"))
    files = {file.relative_to(directory).as_posix(): file.read_bytes() for file in found}
    listing = "".join(f"{name} {sha256(files[name]).hexdigest()}\n" for name in sorted(files))
    return sha256(listing.encode()).hexdigest()


def check_sources(library: CDLL, function: str, packages: Iterable[str]) -> None:
    """Check that a library was built from the sources that lie beside the Python code, if any do.

    Structs and functions may mean something else in others. `function` of the library returns the
    digest of its own; `packages` are the directories of the package that it belongs to.

    Raises:
        BraidError: it was built from others.

    """
    directories = (Path(package) / "native" for package in packages)
    sources = next((each for each in directories if (each / "src").is_dir()), None)
    if sources is None:
        return  # An installed package: both were built at once.
    declare(library, {function: (c_char_p, ())})
    if getattr(library, function)().decode() != digest_of_sources(sources):
        raise _outdated(f"'{library._name}' was built from other sources than those here")


def declare(library: CDLL, signatures: Mapping[str, tuple[Any, Sequence[Any]]]) -> None:
    """Set the result and argument types of functions by name.

    Raises:
        BraidError: the library has no such function: it was built from older sources.

    """
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            problem = f"'{library._name}' has no function '{name}': it was built from older sources"
            raise _outdated(problem) from None
        function.restype = result
        function.argtypes = arguments


def _outdated(problem: str) -> BraidError:
    return BraidError(problem, hint="run 'make build', or 'cmake -B build && cmake --build build'")


ONEDNN = "libdnnl.so.3"
"""oneDNN 3; its C interface is the same in all versions of that number."""

OPENMP = "libgomp.so.1"
"""The library that gives oneDNN its threads."""

OPENBLAS = "libscipy_openblas.so"
"""OpenBLAS as the wheel `scipy-openblas32` has it: its functions have names of their own."""

_EXTRAS = {ONEDNN: "onednn", OPENBLAS: "openblas"}
"""The extra of braid that brings each library."""
_PACKAGES = {OPENBLAS: "scipy_openblas32"}
"""Python packages that have a library, in their `lib`."""


def find_library(name: str) -> Path | None:
    """Return the file of this name in this Python's environment; None for the system's, or where
    not.
    """
    places = [Path(sys.prefix) / "lib", Path(sys.base_prefix) / "lib"]
    package = find_spec(_PACKAGES[name]) if name in _PACKAGES else None
    if package is not None and package.origin is not None:
        places.insert(0, Path(package.origin).parent / "lib")
    return next((place / name for place in places if (place / name).is_file()), None)


@cache
def loaded_library(name: str) -> ctypes.CDLL | None:
    """Return the library, whose symbols code that is loaded later finds; None where it is
    not here.
    """
    try:
        return ctypes.CDLL(str(find_library(name) or name), mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return None


def need_libraries(names: Iterable[str], what: str) -> None:
    """Load the libraries that `what` calls.

    Raises:
        BraidError: one is not installed; the hint says how to install it.

    """
    for name in names:
        if loaded_library(name) is None:
            raise missing_library(name, what)


def missing_library(name: str, what: str) -> BraidError:
    """Return the message that `what` needs a library that cannot be loaded."""
    extra = _EXTRAS.get(name)
    install = install_command(extra) if extra else f"install what has '{name}'"
    return BraidError(
        f"{what} needs the library '{name}', which cannot be loaded",
        hint=f"{install}, or put its directory into LD_LIBRARY_PATH; what is compiled with "
        f"{option_text('kernels', 'generated')} needs none",
    )
