"""Load what installed packages add to targets and backends, by entry points.

- Group `braid.targets`: the name of a target, and a `Path` to the TOML file that describes it.
- Group `braid.passes`: a package of braid, and the table of its passes (`name -> module:class`).
  Its module may have a table `CHECKS` of functions that check their claims (`name ->
  module:function`).
- Group `braid.backends`: the name of a backend, and its class; braid's own backends are there, too.
- Group `braid.devices`: the name of a device plugin, and a `Path` to its shared object.
- Groups `braid.kernel_families.BACKEND`: a name, and a class of kernel families for backends of
  that name, whichever target they belong to.
"""

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from braid.support.errors import BraidError
from braid.support.option_names import option_text

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

TARGETS_GROUP = "braid.targets"
BACKENDS_GROUP = "braid.backends"
EMULATED = "emulated"
"""The entry point of the backend that stands in for those that are not installed."""
DEVICES_GROUP = "braid.devices"
FAMILIES_GROUP = "braid.kernel_families"
PASSES_GROUP = "braid.passes"


def entry_points_of(group: str) -> "EntryPoints":
    """Return the entry points of a group, in the order of the search path; none is loaded."""
    return all_entry_points().select(group=group)


@cache
def all_entry_points() -> "EntryPoints":
    """Read once: a file of every installed package is opened."""
    from importlib.metadata import entry_points  # slow to import, and not needed by every model

    return cast("EntryPoints", entry_points())  # SelectableGroups in Python 3.11


@cache
def installed_names(group: str) -> tuple[str, ...]:
    """Return the names of a group's entry points, sorted; none is loaded."""
    return tuple(sorted({entry.name for entry in entry_points_of(group)}))


@cache
def installed_path(group: str, name: str) -> Path | None:
    """Return the file to which entry points of a group give this name, None without one; it loads
    no others.

    Raises `BraidError` where an entry point of the name cannot be loaded or is not a path, or where
    two packages give the name to different files.
    """
    found: Path | None = None
    for entry in sorted(entry for entry in entry_points_of(group) if entry.name == name):
        path = _load(entry)
        if not isinstance(path, Path):
            raise BraidError(f"entry point '{name}' of '{group}' is {path!r}, expected a Path")
        if found not in (None, path):
            raise BraidError(
                f"there are two files '{name}' of '{group}': '{found}', '{path}'",
                hint="uninstall all packages but one of those that have it",
            )
        found = path
    return found


def installed_paths(group: str) -> dict[str, Path]:
    """Return the files that entry points of a group name. Raises as `installed_path`."""
    paths = {name: installed_path(group, name) for name in installed_names(group)}
    return {name: path for name, path in paths.items() if path is not None}


@cache
def installed_tables() -> tuple[dict[str, str], ...]:
    """Return the tables of passes. Raises `BraidError` where one cannot be loaded."""
    entries = sorted(entry_points_of(PASSES_GROUP))
    return tuple(cast(dict[str, str], _load(entry)) for entry in entries)


@cache
def installed_checks() -> dict[str, str]:
    """Return what checks the claims of passes, by the name of the pass; raises as
    `installed_tables`.
    """
    installed_tables()
    modules = [sys.modules[entry.module] for entry in sorted(entry_points_of(PASSES_GROUP))]
    return {name: path for own in modules for name, path in getattr(own, "CHECKS", {}).items()}


@cache
def installed_backends() -> tuple[str, ...]:
    """Return the names of all backends, sorted, without that of the stand-in for missing ones."""
    return tuple(sorted({entry.name for entry in entry_points_of(BACKENDS_GROUP)} - {EMULATED}))


@cache
def installed_backend(name: str) -> object:
    """Return the backend of this name, made once; its class is called with the name.

    Raises `BraidError` if no package has it, if two packages have it, or if it cannot be loaded or
    created.
    """
    found = tuple(entry for entry in entry_points_of(BACKENDS_GROUP) if entry.name == name)
    if not found:
        known = ", ".join(f"'{other}'" for other in installed_backends()) or "none"
        raise BraidError(
            f"there is no backend '{name}', only {known}",
            hint=f"install the package that has an entry point '{name}' of '{BACKENDS_GROUP}'; "
            "braid's own are found where braid is installed (`make build`); with "
            f"{option_text('emulate', True)} the host computes instead, no faster than the target "
            "says",
        )
    if len({entry.value for entry in found}) > 1:
        values = ", ".join(sorted(f"'{entry.value}'" for entry in found))
        raise BraidError(
            f"there are {len(found)} backends '{name}': {values}",
            hint="uninstall all packages but one of those that have it",
        )
    return _made(found[0], _class_of(found[0]), name)


@cache
def family_backends() -> frozenset[str]:
    """Return the names of the backends for which installed packages have kernel families."""
    prefix = f"{FAMILIES_GROUP}."
    groups = (group for group in all_entry_points().groups if group.startswith(prefix))
    return frozenset(group.removeprefix(prefix) for group in groups)


@cache
def installed_families(backend: str, machine: object) -> tuple[object, ...]:
    """Return every family of other packages for backends of this name, made for `machine`.

    Raises `BraidError` if one of them cannot be loaded or created.
    """
    entries = sorted(entry_points_of(f"{FAMILIES_GROUP}.{backend}"))
    return tuple(_made(entry, _class_of(entry), machine) for entry in entries)


def _class_of(entry: "EntryPoint") -> type:
    loaded = _load(entry)
    if not isinstance(loaded, type):
        raise BraidError(
            f"entry point '{entry.name}' of '{entry.group}' is {loaded!r}, expected a class"
        )
    return loaded


def _made(entry: "EntryPoint", made: type, *arguments: object) -> object:
    try:
        return made(*arguments)
    except Exception as error:
        with_what = f"with the arguments {arguments!r}" if arguments else "without arguments"
        raise BraidError(
            f"the class of entry point '{entry.name}' of '{entry.group}' cannot be made "
            f"{with_what}: {error}",
            hint=f"it is '{entry.value}'",
        ) from error


def _load(entry: "EntryPoint") -> object:
    try:
        return entry.load()
    except Exception as error:
        raise BraidError(
            f"entry point '{entry.name}' of '{entry.group}' cannot be loaded: {error}",
            hint=f"it is '{entry.value}'; fix or uninstall the package that has it",
        ) from error
