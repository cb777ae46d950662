"""What holds for all that is compiled in a block of code, or in this process.

It bears on what a model is compiled to beside what `braid.compile` is given; who keeps what was
compiled for later has to know whether there is any.
"""

from contextvars import ContextVar
from typing import Any, TypeVar

_T = TypeVar("_T")

_settings: list[tuple[ContextVar[Any], object]] = []
_extending: set[str] = set()


def compile_setting(name: str, default: _T) -> ContextVar[_T]:
    """A variable of a context whose value bears on what is compiled in it, or looks on."""
    variable = ContextVar(name, default=default)
    _settings.append((variable, default))
    return variable


def is_default_scope() -> bool:
    """Whether no such variable has another value than its default."""
    return all(variable.get() == default for variable, default in _settings)


def note_extension(module: str) -> None:
    """Note that code of this module adds to the compiler of this process."""
    _extending.add(module.partition(".")[0])


def extending_packages() -> frozenset[str]:
    """The packages of the modules that have added to the compiler of this process."""
    return frozenset(_extending)
