"""Keep what holds for all that is compiled in a block of code, or in this process.

None of it is a setting (`support/settings.py`): it does not change the generated code, but
listeners, checks, and the available records and extensions. Who keeps what was compiled for later
has to know whether there is any.
"""

from contextvars import ContextVar
from typing import Any, TypeVar

_T = TypeVar("_T")

_variables: list[tuple[ContextVar[Any], object]] = []
_extending: set[str] = set()


def scope_variable(name: str, default: _T) -> ContextVar[_T]:
    """Return a variable of a context with a part in what is compiled there."""
    variable = ContextVar(name, default=default)
    _variables.append((variable, default))
    return variable


def is_default_scope() -> bool:
    """Return whether no such variable has another value than its default."""
    return all(variable.get() == default for variable, default in _variables)


def note_extension(module: str) -> None:
    """Note that code of this module adds to the compiler of this process."""
    _extending.add(module.partition(".")[0])


def extending_packages() -> frozenset[str]:
    """Return the packages of the modules that have added to the compiler of this process."""
    return frozenset(_extending)
