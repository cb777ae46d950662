"""Modules, and names of a module (PEP 562), that are loaded on first use."""

import os
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from braid.support.collector import rare_collections
from braid.support.distribution import install_command

# A child of fork keeps the locks of modules that another thread was importing, and would wait for
# that thread; so nothing forks while names are loaded.
_loading = threading.RLock()
os.register_at_fork(
    before=_loading.acquire,
    after_in_parent=_loading.release,
    after_in_child=_loading.release,
)


def lazy_names(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of `module` whose names stand in other modules: `homes` by name."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        with _loading:
            try:
                with rare_collections(imports=True):
                    home = import_module(homes[name])
            except ModuleNotFoundError as error:
                if error.name != homes[name]:
                    raise
                raise ImportError(
                    f"'{module}.{name}' is a part of the compiler, which is not installed; "
                    + install_command(),
                    name=error.name,
                ) from error
            return getattr(home, name)

    return load


class LazyModule:
    """Replaces a module, which is loaded when a name in it is first used."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        with _loading, rare_collections(imports=True):
            found = getattr(self._load(), name)
        setattr(self, name, found)  # asked for once
        return found


def lazy_module(name: str) -> Any:
    """Return the module `name`, which is imported when a name in it is first asked for."""
    return LazyModule(lambda: import_module(name))
