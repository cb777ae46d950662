"""Finding the description of a target by its name, and reading it."""

from functools import cache
from pathlib import Path

from braid.support.entry_points import installed_targets
from braid.support.errors import BraidError, SourceLocation
from braid.support.input_files import read_toml, reason
from braid.targets.machines.parse import parse_target
from braid.targets.machines.table import Table
from braid.targets.machines.target import Target

HOST = "host"
"""The target whose host other targets have that describe none: the machine braid runs on."""
_DIRECTORY = Path(__file__).parent


@cache
def load_target(name: str = HOST) -> Target:
    """The target of this name, or the one that the TOML file at this path describes.

    Names are those of braid's own targets and of the ones that installed packages add.
    Raises `BraidError` for an unknown name and a malformed file, naming the file and the key.
    """
    path = _path_of(name)
    location = SourceLocation(str(path))
    try:
        data = read_toml(path)
    except FileNotFoundError as error:
        known = sorted(target_names())
        raise BraidError(
            f"there is no target '{name}'",
            hint=f"expected a path that ends in .toml, or one of {known}",
        ) from error
    except (OSError, ValueError) as error:
        raise BraidError(f"cannot read target: {reason(error)}", location=location) from error
    default = None if path == _path_of(HOST) else load_target(HOST)
    return parse_target(Table(data, "target", location), default)


def target_names() -> frozenset[str]:
    """The names of braid's own targets and of those that installed packages add."""
    return frozenset({*(file.stem for file in _DIRECTORY.glob("*.toml")), *installed_targets()})


def _path_of(name: str) -> Path:
    """Where the target is described; braid's own names cannot be taken by others."""
    if name.endswith(".toml"):
        return Path(name)
    own = _DIRECTORY / f"{name}.toml"
    return own if own.exists() else installed_targets().get(name, own)
