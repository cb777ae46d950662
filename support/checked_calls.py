"""Objects of other packages, asked so that their mistakes are named as theirs.

Braid's own objects are trusted: what they raise is a bug of braid. An object of another package is
called through `Checked`: methods that it lacks come from the base class, and each result is
checked. Whatever is wrong becomes a `BraidError` that names the object and the method.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType, MethodType
from typing import Any
from warnings import warn

from braid.support.errors import BraidError, SourceLocation
from braid.support.option_names import by_door

FormerNames = Mapping[str, str]
"""The names that parts had in earlier versions, by the names that they have now."""

NO_FORMER_NAMES: FormerNames = MappingProxyType({})

Check = Callable[..., Any]
"""Takes a result and the arguments of the call; returns the result in its final form, or raises."""


@dataclass(frozen=True)
class Maker:
    """Whose mistakes they are: `title` names it, such as `backend 'c'`, and `about` the question.

    `about` continues a sentence that ends with the method, such as ` of a group of braid.add`.
    """

    title: str
    thing: object
    about: str = ""
    location: SourceLocation | None = None

    @contextmanager
    def named(self, method: str) -> Generator[None]:
        """Turn whatever `method` raises in the block into a BraidError."""
        try:
            yield
        except BraidError:
            raise
        except Exception as error:
            detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise BraidError(
                f"{self.title} fails in '{method}'{self.about}: {detail}",
                location=self.location,
                hint=f"fix {class_of(self.thing)}; "
                + by_door("the traceback shows where", "--debug shows where"),
            ) from error


class Checked:
    """Return `thing`, an object of another package, as a `base` whose results `checks` verify.

    The answers of a part without a check are trusted. The names in `checks` are methods and
    properties of `base`. A part under one of the `former` names of `base` still answers.
    """

    def __init__(
        self,
        thing: object,
        base: type,
        checks: Mapping[str, Check],
        maker: Maker,
        former: FormerNames = NO_FORMER_NAMES,
    ) -> None:
        self.thing, self._base, self._checks, self._maker = thing, base, checks, maker
        self._former = former

    def __getattr__(self, name: str) -> Any:
        own = self._name_in_thing(name)
        if not has_part(self.thing, own):
            default = getattr(self._base, name)
            return MethodType(default, self) if callable(default) else default
        with self._maker.named(own):
            part = getattr(self.thing, own)
            if not callable(getattr(self._base, name, None)):
                return self._checked(name, part)
        return partial(self._call, name, part)

    def _name_in_thing(self, name: str) -> str:
        """Return the name of part `name` in the object: the former name if its definition is more
        derived.
        """
        former = self._former.get(name)
        if former is None:
            return name
        scopes = (getattr(self.thing, "__dict__", {}), *map(vars, type(self.thing).__mro__))
        names = (each for scope in scopes for each in (name, former) if each in scope)
        if (found := next(names, name)) == former:
            warn(
                f"{class_of(self.thing)} defines '{former}', which is called '{name}' now",
                DeprecationWarning,
                stacklevel=3,
            )
        return found

    def _call(self, name: str, method: Any, *arguments: Any, **named: Any) -> Any:
        with self._maker.named(name):
            given = (*arguments, *named.values())
            answer: Any = self._checked(name, method(*arguments, **named), *given)
        return self._iterated(name, answer) if hasattr(answer, "__next__") else answer

    def _checked(self, name: str, answer: Any, *arguments: Any) -> Any:
        check = self._checks.get(name)
        return answer if check is None else check(answer, *arguments)

    def _iterated(self, name: str, answer: Iterator[Any]) -> Iterator[Any]:
        with self._maker.named(name):
            yield from answer


def is_own(thing: object) -> bool:
    """Return whether `thing` is braid's own, and so trusted."""
    return type(thing).__module__.startswith("braid.")


def has_part(thing: object, name: str) -> bool:
    """Return whether `thing` has an attribute, without evaluating it."""
    return hasattr(type(thing), name) or name in getattr(thing, "__dict__", {})


def missing_parts(thing: object, base: type, former: FormerNames = NO_FORMER_NAMES) -> str:
    """List what `base` has no default for and `thing` lacks; empty if nothing is missing.

    A protocol has no defaults. A part may have its `former` name.
    """
    given, is_protocol = vars(base), getattr(base, "_is_protocol", False)
    required = (
        name
        for name in dict.fromkeys((*base.__annotations__, *given))
        if name not in given or is_protocol or getattr(given[name], "__isabstractmethod__", False)
    )
    missing = (
        f"'{name}'"
        for name in required
        if not name.startswith("_") and not has_part(thing, name)
        if name not in former or not has_part(thing, former[name])
    )
    return ", ".join(missing)


def require_parts(thing: object, base: type, former: FormerNames = NO_FORMER_NAMES) -> None:
    """Raise TypeError if `thing` lacks a part that `base` has no default for."""
    if missing := missing_parts(thing, base, former):
        raise TypeError(f"{type(thing).__qualname__} has no {missing}")


def class_of(thing: object) -> str:
    """Return where the class of `thing` is defined, in quotes."""
    return f"'{type(thing).__module__}:{type(thing).__qualname__}'"


def one_of(*kinds: type) -> Check:
    """Check that an answer is of one of these types."""

    def check(answer: Any, *_: Any) -> Any:
        if not isinstance(answer, kinds):
            raise TypeError(f"it is {answer!r}, expected {_named(kinds)}")
        return answer

    return check


def all_of(*kinds: type) -> Check:
    """Check that an answer is a sequence of values of these types; it is used as a tuple."""

    def check(answer: Any, *_: Any) -> tuple[Any, ...]:
        if isinstance(answer, str | bytes):
            raise TypeError(f"it is {answer!r}, expected a sequence of {_named(kinds)}")
        found = tuple(answer)
        for value in found:
            if not isinstance(value, kinds):
                raise TypeError(f"{value!r} is in its result, expected {_named(kinds)}")
        return found

    return check


def _named(kinds: Iterable[type]) -> str:
    return " or ".join("None" if kind is type(None) else f"a {kind.__name__}" for kind in kinds)
