"""Calls of public functions with arguments that they do not take: said as all errors are."""

import functools
import os
from collections.abc import Callable, Collection, Iterable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from braid.support.errors import BraidError, WrongArgumentError, did_you_mean

_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Class = TypeVar("_Class", bound=type)


def checks_arguments(called: str) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]:
    """Let a function raise WrongArgumentError where its arguments are not those of its signature.

    `called` is what users call it, such as `braid.load`. A valid call costs nothing: its arguments
    are checked only if Python refuses it.
    """

    def decorated(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
        @functools.wraps(function)
        def checked(*arguments: _P.args, **keywords: _P.kwargs) -> _Result:
            try:
                return function(*arguments, **keywords)
            except TypeError as error:
                here = error.__traceback__
                if here is None or here.tb_next is not None:
                    raise  # by a line of the function
                wrong = _wrong(called, function, arguments, keywords)
                if wrong is None:
                    raise
            raise wrong

        return checked

    return decorated


def checks_methods(called: str) -> Callable[[_Class], _Class]:
    """Let all public methods of a class, and its constructor, check their arguments.

    `called` is what users call the class. Calls of an object itself take any arguments.
    """

    def decorated(kind: _Class) -> _Class:
        for name, member in [*vars(kind).items()]:
            if not isinstance(member, FunctionType):
                continue
            if name == "__init__":
                setattr(kind, name, checks_arguments(called)(member))
            elif not name.startswith("_"):
                setattr(kind, name, checks_arguments(f"{called}.{name}")(member))
        return kind

    return decorated


def checked_path(called: str, path: object, what: str, hint: str) -> "str | os.PathLike[str]":
    """Return what is given for the path of `what`. Raises BraidError where it is no path."""
    if isinstance(path, str):
        return path
    if isinstance(path, os.PathLike):
        return cast("os.PathLike[str]", path)
    raise BraidError(f"{called} takes the path of {what}, got {type(path).__name__}", hint=hint)


def check_names(called: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise WrongArgumentError for a keyword of a call that the function does not take."""
    for name in names:
        if name not in known:
            listed = f"its options are {', '.join(known)}" if known else "it takes no options"
            raise WrongArgumentError(
                f"{called} has no option '{name}'", hint=did_you_mean(name, known) or listed
            )


def _wrong(
    called: str,
    function: Callable[..., object],
    arguments: tuple[object, ...],
    keywords: dict[str, Any],
) -> WrongArgumentError | None:
    """Return what is wrong with the arguments of a call, None where nothing is."""
    import inspect  # slow, and rarely needed

    parameters = [*inspect.signature(function).parameters.values()]
    is_method = bool(parameters) and parameters[0].name == "self"
    own, given = parameters[is_method:], arguments[is_method:]
    named = [each.name for each in own if each.kind is not each.POSITIONAL_ONLY]
    placed = [each.name for each in own if each.kind is not each.KEYWORD_ONLY]
    try:
        check_names(called, keywords, named)
    except WrongArgumentError as error:
        return error
    takes = f"it takes {', '.join(each.name for each in own) or 'nothing'}"
    if len(given) > len(placed):
        count = f"{len(placed)} argument{'s' * (len(placed) != 1)} by position"
        options = [name for name in named if name not in placed]
        return WrongArgumentError(
            f"{called} takes {count}, it was given {len(given)}",
            hint=f"give {', '.join(options)} by keyword" if options else takes,
        )
    if twice := next((name for name in placed[: len(given)] if name in keywords), None):
        return WrongArgumentError(
            f"{called} was given '{twice}' by position and by keyword", hint="give it once"
        )
    there = {*placed[: len(given)], *keywords}
    missing = [e.name for e in own if e.default is e.empty and e.name not in there]
    if missing:
        return WrongArgumentError(f"{called} was not given '{missing[0]}'", hint=takes)
    return None
