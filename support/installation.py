"""What is installed, as a stamp: another one when code that compiles models may be another."""

import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

_SUFFIXES = (".py", ".toml", ".json", ".so", ".a", ".o", ".c", ".h")
_OWN = "braid"


def installation_stamp() -> str:
    """A digest of what compiles models here.

    It is made of the names and versions of all distributions, and of the sizes and times of the
    files of braid and of the packages that add to it by entry points. Nothing is imported.
    """
    digest = hashlib.sha256(sys.version.encode())
    for metadata in _distributions():
        digest.update(f"\0{metadata.name}".encode())
    for package in sorted(stamped_packages()):
        for line in _files(package):
            digest.update(f"\0{line}".encode())
    return digest.hexdigest()


def stamped_packages() -> frozenset[str]:
    """The names of braid and of the packages that add to it by entry points."""
    found = {_OWN}
    for metadata in _distributions():
        found |= _extensions(metadata / "entry_points.txt")
    return frozenset(found)


def _distributions() -> Iterator[Path]:
    """What is said of each distribution, in the order of the search path."""
    for directory in map(Path, dict.fromkeys(sys.path)):
        yield from sorted(directory.glob("*.dist-info"))


def _extensions(entry_points: Path) -> set[str]:
    """The top-level packages in which the entry points of braid's groups lie."""
    try:
        text = entry_points.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    found: set[str] = set()
    is_ours = False
    for line in text.splitlines():
        if line.startswith("["):
            is_ours = line.startswith(f"[{_OWN}.")
        elif is_ours and "=" in line:
            found.add(line.partition("=")[2].partition(":")[0].strip().partition(".")[0])
    return found


def _files(package: str) -> Iterator[str]:
    """Name, size and time of each file of code and data in a package."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return
    for place in spec.submodule_search_locations or ():
        # The rooms of a checkout are links.
        for directory, folders, names in os.walk(place, followlinks=True):
            folders.sort()
            for name in sorted(names):
                if name.endswith(_SUFFIXES):
                    yield _stamp(Path(directory, name))
    if spec.origin is not None and not spec.submodule_search_locations:
        yield _stamp(Path(spec.origin))


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"
