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
_OWN = "braid.lowering."
"""Where braid's own families are, the only ones that a target file can name."""


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
    module, _, name = path.partition(":")
    if not module.startswith(_OWN):
        raise BraidError(
            f"kernel family '{path}' of a target file is none of braid's own",
            hint="a file must not say what is imported; the package of the family registers it as "
            "an entry point of 'braid.kernel_families.' and the backend's name",
        )
    try:
        family: object = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BraidError(f"cannot load kernel family '{path}': {error}") from error
    if not isinstance(family, type) or family.__module__ != module:
        raise BraidError(f"cannot load kernel family '{path}': it is not a class of that module")
    return family()
