"""Kernel families of a backend, made from import paths when they are first asked for."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module

from braid.support.entry_points import installed_families
from braid.support.errors import BraidError

_HIDDEN = ContextVar("_HIDDEN", default=False)
"""Whether kernel families are left out."""


def families_of(backend: str, paths: Sequence[str]) -> tuple[object, ...]:
    """One instance of every family that installed packages have for `backend`, then of `paths`.

    There are none inside of `without_families`. Raises `BraidError` where one cannot be imported.
    """
    if _HIDDEN.get():
        return ()
    return (*installed_families(backend), *map(_instance, paths))


@contextmanager
def without_families() -> Generator[None]:
    """Let backends have no kernel families, so that all code is that of the generic lowering."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


@cache
def _instance(path: str) -> object:
    module, separator, name = path.partition(":")
    try:
        if not separator:
            raise ImportError("expected 'module:class'")
        return getattr(import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise BraidError(f"cannot load kernel family '{path}': {error}") from error
