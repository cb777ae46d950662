"""Compute a stamp of the installation, which changes when code that compiles models may have
changed."""

import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

_OWN = "braid"
_GROUPS = (f"[{_OWN}.", "[xdsl.universe]")
"""The prefixes of the lines that name groups of entry points by which packages add to braid."""
_METADATA = ("*.dist-info", "*.egg-info")
_first: list[str] = []
"""The stamp when this process first asked for it."""


def installation_stamp() -> str | None:
    """Return a digest of what compiles models here; None if the installation is not
    the one with which this process began.

    The modules in memory may then be of either installation. The digest covers the names, versions
    and times of all distributions, and the sizes and times of the files of braid and of packages
    that extend it by entry points. Nothing is imported.
    """
    stamp = _stamp_now()
    _first[:] = _first or [stamp]
    return stamp if stamp == _first[0] else None


def _stamp_now() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for line in _search_path():
        digest.update(f"\0{line}".encode(errors="surrogateescape"))
    for package in sorted(stamped_packages()):
        for line in _files(package):
            digest.update(f"\0{line}".encode(errors="surrogateescape"))
    return digest.hexdigest()


def stamped_packages() -> frozenset[str]:
    """Return the names of braid and of the packages that add to it by entry points."""
    found = {_OWN}
    for metadata in _distributions():
        found |= _extensions(metadata / "entry_points.txt")
    return frozenset(found - {"xdsl"})  # its version identifies it


def _search_path() -> Iterator[str]:
    """Yield a line for each distribution, whose times distinguish it from another one of the same
    version.

    One is read for each archive, whatever it contains.
    """
    yield from map(_stamp, _distributions())
    yield from (_stamp(place) for place in map(Path, dict.fromkeys(sys.path)) if place.is_file())


def _distributions() -> Iterator[Path]:
    """Yield the facts about each distribution, in the order of the search path."""
    for directory in map(Path, dict.fromkeys(sys.path)):
        for pattern in _METADATA:
            yield from sorted(directory.glob(pattern))


def _extensions(entry_points: Path) -> set[str]:
    """Return the top-level packages in which the entry points of braid's groups lie."""
    try:
        text = entry_points.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    found: set[str] = set()
    is_ours = False
    for line in text.splitlines():
        if line.startswith("["):
            is_ours = line.startswith(_GROUPS)
        elif is_ours and "=" in line:
            found.add(line.partition("=")[2].partition(":")[0].strip().partition(".")[0])
    return found


def _files(package: str) -> Iterator[str]:
    """Yield name, size and time of each file of a package, except what Python makes itself."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return
    for place in spec.submodule_search_locations or ():
        # The packages of a checkout are links.
        for directory, folders, names in os.walk(place, followlinks=True):
            folders[:] = sorted(set(folders) - {"__pycache__"})
            yield from (_stamp(Path(directory, name)) for name in sorted(names))
    if spec.origin is not None and not spec.submodule_search_locations:
        yield _stamp(Path(spec.origin))


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"
