"""Report what is wrong with a command line as all errors are reported, with a hint."""

from collections.abc import Sequence
from typing import Any

from braid.support.errors import BraidError
from braid.tools.terminal.interrupts import asks_for_json

_NO_COMMAND = "Missing command."
_PREFIX = "Input should be "


def usage_error(error: Exception, arguments: Sequence[str]) -> BraidError | None:
    """Return the diagnostic for what typer finds wrong; None for errors of other kinds."""
    # Errors of a command line have this method in all versions of typer.
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        return None
    message = " ".join(str(format_message()).split())
    command = _command(error, arguments)
    if "unexpected extra argument" in message and _follows_json(message, arguments):
        return BraidError(
            message, hint=f"--json takes no file, it prints: {command} … --json > FILE"
        )
    if message == _NO_COMMAND:
        return _no_command(error, command, arguments)
    return BraidError(value_error(error, arguments) or message, hint=f"see {command} --help")


def value_error(error: Exception, arguments: Sequence[str]) -> str | None:
    """Return what is wrong with the value of an option; None for errors of other kinds."""
    message = " ".join(str(getattr(error, "format_message", str)()).split())
    flag, _, wrong = message.removeprefix("Invalid value for ").partition(": ")
    value = _value_of(getattr(error, "param", None), arguments)
    if value is None or not wrong.startswith(_PREFIX):
        return None
    expected = wrong.removeprefix(_PREFIX).partition(", unable")[0]
    name = flag.strip("'")
    return f"{name} is '{value:.200}', expected {expected.removeprefix('a valid ')}"


def _follows_json(message: str, arguments: Sequence[str]) -> bool:
    """Return whether the first argument that is too many stands behind `--json`."""
    extra = message.rpartition("(")[2].rstrip(")").split()
    places = (n for n, each in enumerate(arguments[1:], 1) if [each] == extra[:1])
    return any(arguments[place - 1] == "--json" for place in places)


def _no_command(error: Exception, command: str, arguments: Sequence[str]) -> BraidError:
    """Return the diagnostic for a group of commands that is called without one of them."""
    context: Any = getattr(error, "ctx", None)
    names = list(context.command.commands) if context is not None else []
    if not names:
        return BraidError(_NO_COMMAND, hint=f"see {command} --help")
    given = " --json" if asks_for_json([*arguments]) else ""
    return BraidError(
        f"{command} is called without a command, expected one of {', '.join(names)}",
        hint=f"such as {command} {names[0]}{given}; see {command} --help",
    )


def _command(error: Exception, arguments: Sequence[str]) -> str:
    """Return the command that was called, as far as it is known."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    first = next((each for each in arguments if not each.startswith("-")), "")
    return f"braid {first}".strip()


def _value_of(parameter: Any, arguments: Sequence[str]) -> str | None:
    """Return the command line's form of an option; None if that is ambiguous."""
    flags = [*getattr(parameter, "opts", ()), *getattr(parameter, "secondary_opts", ())]
    for place, argument in enumerate(arguments):
        name, separator, value = argument.partition("=")
        if name in flags and separator:
            return value
        if argument in flags and place + 1 < len(arguments):
            return arguments[place + 1]
    return None
