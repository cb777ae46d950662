"""Commands of which each takes the options that all have: -v, -q, --json and --debug."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from braid.support.errors import BraidError
from braid.tools.terminal.answer import Answer
from braid.tools.terminal.reporter import DEBUG, QUIET, explaining_verbosely, give, reporter

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
"""Settings of contexts; those of commands inherit them from their groups."""


def _set_verbose(count: int) -> int:
    if count:
        _set_verbosity(min(count, DEBUG))
    return count


def _set_quiet(wanted: bool) -> bool:
    if wanted:
        _set_verbosity(QUIET)
    return wanted


def _set_verbosity(wanted: int) -> None:
    to = reporter()
    if (to.verbosity < 0) != (wanted < 0) and to.verbosity:
        raise BraidError("-q and -v exclude each other", hint="give one of them")
    to.verbosity = wanted


def _set_json(wanted: bool) -> bool:
    reporter().is_json |= wanted
    return wanted


def _set_debug(wanted: bool) -> bool:
    reporter().shows_tracebacks |= wanted
    return wanted


_COMMON: dict[str, tuple[Any, object]] = {
    "verbose": (
        Annotated[
            int,
            typer.Option(
                *("-v", "--verbose"),
                count=True,
                is_eager=True,
                callback=_set_verbose,
                show_default=False,
                help="Print decisions, and the time of each phase, on standard error; -vv prints "
                "every step.",
            ),
        ],
        0,
    ),
    "quiet": (
        Annotated[
            bool,
            typer.Option(
                *("-q", "--quiet"),
                is_eager=True,
                callback=_set_quiet,
                help="Print results and errors only.",
            ),
        ],
        False,
    ),
    "as_json": (
        Annotated[
            bool,
            typer.Option(
                "--json",
                is_eager=True,
                callback=_set_json,
                help="Print the result and all diagnostics as one JSON document.",
            ),
        ],
        False,
    ),
    "debug": (
        Annotated[
            bool,
            typer.Option(
                "--debug",
                is_eager=True,
                callback=_set_debug,
                help="Show the Python traceback of an error.",
            ),
        ],
        False,
    ),
}
"""Types and defaults of the options that all commands have, by parameter."""


def _do_nothing() -> None: ...


class CommandGroup(typer.Typer):
    """A group whose commands take the common options, and return an `Answer`."""

    def __init__(self, name: str, help: str, **how: Any) -> None:
        """Begin without commands."""
        super().__init__(
            name=name, help=help, rich_markup_mode=None, context_settings=HELP_OPTIONS, **how
        )
        if not how.get("invoke_without_command"):
            self.callback()(_do_nothing)  # what gives the group itself the common options

    def command(self, *args: Any, **how: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function as a command; the function does not change."""
        register = super().command(*args, **how)
        return _registering(register)

    def callback(
        self, *args: Any, **how: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function that is called before a command of the group, or without one."""
        register = super().callback(*args, **how)
        return _registering(register)


def _registering(
    register: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        register(_with_common_options(function))
        return function

    return decorated


def _with_common_options(function: Callable[..., Answer | None]) -> Callable[..., None]:
    """Return what has the common options too, and prints what the function answers."""
    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(kind=_KEYWORD, annotation=hints[name])
        for name, parameter in inspect.signature(function).parameters.items()
    ]
    wants_context = "context" in hints
    if not wants_context:
        own.append(inspect.Parameter("context", _KEYWORD, annotation=typer.Context))
    for name, (kind, default) in _COMMON.items():
        own.append(inspect.Parameter(name, _KEYWORD, default=default, annotation=kind))

    @functools.wraps(function)
    def called(**values: Any) -> None:
        for name in _COMMON:
            del values[name]
        context = values["context"] if wants_context else values.pop("context")
        reporter().command = context.command_path.partition(" ")[2]
        with explaining_verbosely():
            answer = function(**values)
        if answer is not None and (status := give(answer)):
            raise typer.Exit(status)

    called.__signature__ = inspect.Signature(own)  # pyright: ignore[reportAttributeAccessIssue]
    called.__annotations__ = {each.name: each.annotation for each in own}
    return called


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
