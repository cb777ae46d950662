"""A property that is computed once, without the lock of `functools.cached_property`.

In Python 3.11 that lock is shared by all objects of a class. A process that is forked while one of
its threads computes such a property leaves it held in the child, which then waits for ever.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_T = TypeVar("_T")


class lockless_property(Generic[_T]):  # named as `property`, which it replaces
    """Calls the method once for each object, and keeps the result in the object's `__dict__`.

    Several threads that ask at once may each compute it; one of the results stays.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        """Stand for the method `compute`, and for its text."""
        self._compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> "lockless_property[_T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...
    def __get__(self, instance: object | None, owner: type) -> "lockless_property[_T] | _T":
        """Return the value: later reads find it in `__dict__`, which goes before this
        descriptor.
        """
        if instance is None:
            return self
        value = self._compute(instance)
        return instance.__dict__.setdefault(self._compute.__name__, value)
