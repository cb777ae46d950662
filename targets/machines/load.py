"""Finding the description of a target by its name, and reading it."""

from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from braid.support.entry_points import TARGETS_GROUP, installed_names, installed_path
from braid.support.errors import BraidError, SourceLocation, did_you_mean
from braid.support.input_files import read_toml, reason
from braid.targets.machines.parse import parse_target
from braid.targets.machines.table import Table
from braid.targets.machines.target import Target

HOST = "host"
"""The target whose host other targets have that describe none: the machine braid runs on."""
_DIRECTORY = Path(__file__).parent

Stamp: TypeAlias = tuple[int, int, int] | None


def load_target(name: str = HOST) -> Target:
    """Return the target of this name, or the one that the TOML file at this path describes.

    Names are those of braid's own targets and of installed packages' targets. A file is
    read again when it has changed. Raises `BraidError` for an unknown name and a malformed file,
    naming the file and the key.
    """
    path = _path_of(name)
    return _loaded(name, path, _stamp(path), _stamp(_path_of(HOST)))


@lru_cache(maxsize=256)
def _loaded(name: str, path: Path, stamp: Stamp, host_stamp: Stamp) -> Target:
    """Return the target at `path`; the stamps change when it, and the host it may have, have
    changed.
    """
    location = SourceLocation(str(path))
    try:
        data = read_toml(path)
    except FileNotFoundError as error:
        known = sorted(target_names())
        similar = did_you_mean(name, known)
        raise BraidError(
            f"there is no target '{name}'",
            hint=f"{f'{similar} ' if similar else ''}expected a path that ends in .toml, or one of "
            f"{', '.join(known)}",
        ) from error
    except (OSError, ValueError) as error:
        raise BraidError(f"cannot read target: {reason(error)}", location=location) from error
    default = None if path == _path_of(HOST) else load_target(HOST)
    return parse_target(Table(data, "target", location), default)


def _stamp(path: Path) -> Stamp:
    """Return a stamp that differs when the file has changed; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def target_names() -> frozenset[str]:
    """Return the names of braid's own targets and of those that installed packages add."""
    own = (file.stem for file in _DIRECTORY.glob("*.toml"))
    return frozenset({*own, *installed_names(TARGETS_GROUP)})


def _path_of(name: str) -> Path:
    """Return where the target is described; braid's own names cannot be taken by others."""
    if name.endswith(".toml"):
        return Path(name)
    own = _DIRECTORY / f"{name}.toml"
    return own if own.exists() else installed_path(TARGETS_GROUP, name) or own
