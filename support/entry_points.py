"""What installed packages add to the targets, by entry points.

- Group `braid.targets`: the name of a target, and a `Path` to the TOML file that describes it.
- Groups `braid.kernel_families.BACKEND`: a name, and a class of kernel families for backends of
  that name, whichever target they belong to.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from braid.support.errors import BraidError

TARGETS_GROUP = "braid.targets"
FAMILIES_GROUP = "braid.kernel_families"


def installed_targets() -> dict[str, Path]:
    """The files that describe the targets of other packages, by their names.

    Raises as `installed_paths`.
    """
    return installed_paths(TARGETS_GROUP)


@cache
def installed_paths(group: str) -> dict[str, Path]:
    """The files that entry points of a group name.

    Raises `BraidError` where an entry point cannot be loaded or is no path.
    """
    found: dict[str, Path] = {}
    for entry in sorted(entry_points(group=group)):
        path = _load(entry)
        if not isinstance(path, Path):
            raise BraidError(
                f"entry point '{entry.name}' of '{group}' is {path!r}, expected a Path"
            )
        found[entry.name] = path
    return found


def family_backends() -> frozenset[str]:
    """The names of the backends for which installed packages have kernel families."""
    prefix = f"{FAMILIES_GROUP}."
    groups = (group for group in entry_points().groups if group.startswith(prefix))
    return frozenset(group.removeprefix(prefix) for group in groups)


@cache
def installed_families(backend: str) -> tuple[object, ...]:
    """One instance of every family of other packages for backends of this name.

    Raises `BraidError` where one of them cannot be loaded or made.
    """
    families: list[object] = []
    for entry in sorted(entry_points(group=f"{FAMILIES_GROUP}.{backend}")):
        family = _load(entry)
        if not isinstance(family, type):
            raise BraidError(
                f"entry point '{entry.name}' of '{entry.group}' is {family!r}, expected a class"
            )
        families.append(_made(entry, family))
    return tuple(families)


def _made(entry: EntryPoint, family: type) -> object:
    try:
        return family()
    except Exception as error:
        raise BraidError(
            f"the class of entry point '{entry.name}' of '{entry.group}' cannot be made without "
            f"arguments: {error}",
            hint=f"it is '{entry.value}'",
        ) from error


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise BraidError(
            f"entry point '{entry.name}' of '{entry.group}' cannot be loaded: {error}",
            hint=f"it is '{entry.value}'; mend or uninstall the package that has it",
        ) from error
