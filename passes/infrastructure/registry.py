"""The passes of braid by name, each loaded only when it is used.

Each package that has passes lists them in a table (`pass_table.py`), which an entry point of the
group `braid.passes` names. Passes of xDSL and of other packages are found through the
`xdsl.universe` entry points.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module

from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from braid.support.entry_points import installed_tables
from braid.support.errors import BraidError

PassFactory = Callable[[], type[ModulePass]]


def braid_passes() -> dict[str, PassFactory]:
    """Return the passes of this package."""
    return {name: partial(_load, name) for name in pass_table()}


@cache
def pass_table() -> dict[str, str]:
    """Return the text `module:class` of the passes of this package by name.

    Raises `BraidError` where a table cannot be loaded.
    """
    return dict(sorted(item for table in installed_tables() for item in table.items()))


def braid_only_passes() -> dict[str, PassFactory]:
    """Return the passes of this package whose names do not exist in xDSL.

    A universe that repeats a name of another one makes `xdsl-opt` refuse to start.
    """
    taken = get_all_passes()
    return {name: factory for name, factory in braid_passes().items() if name not in taken}


@cache
def available_passes() -> dict[str, PassFactory]:
    """Return every pass that a pipeline can name; braid's own come first and win over xDSL's."""
    return braid_passes() | installed_universe().all_passes | braid_passes()


@cache
def installed_universe() -> Universe:
    """Return the offers of the `xdsl.universe` entry points of all installed packages.

    Raises `BraidError` if one of them cannot be loaded or two of them clash.
    """
    try:
        return Universe.get_multiverse()
    except Exception as error:
        raise BraidError(
            f"a package that extends xDSL cannot be loaded: {error}",
            hint="see the entry points of group 'xdsl.universe' of the installed packages",
        ) from error


def _load(name: str) -> type[ModulePass]:
    module, _, attribute = pass_table()[name].partition(":")
    loaded = getattr(import_module(module), attribute)
    assert issubclass(loaded, ModulePass) and loaded.name == name
    return loaded
