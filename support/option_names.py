"""Name options as users give them: in Python, on a command line, in a session.

These are a keyword, a flag, and an entry of the options of `braid.onnxruntime`. Messages name
options by `option_text`, so that one message fits all. Other things with several names, such as a
function and its command, are named by `by_door`.
"""

import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TypeVar

from braid.support.errors import WrongArgumentError

_Given = TypeVar("_Given")

_FLAGS = {
    "shapes": "--shape",
    "dims": "--dim",
    "constants": "--constant",
    "shape_bounds": "--shape-bound",
    "integers": "--integers/--no-integers",
    "cache": "--cache/--no-cache",
    "inputs": "--input",
}
"""Flags that are not the keyword with dashes."""

_ATTRIBUTES = {
    "threads": "intra_op_num_threads",
    "inter_op_threads": "inter_op_num_threads",
    "profile": "enable_profiling",
}
"""Attributes that the options of a session have instead of an entry."""


_FORMER_KEYWORDS = {"on_miss": "untuned", "on_miss_seconds": "untuned_seconds"}
"""The keywords of options by those that they had in earlier versions, which are still accepted."""


class _Door(Enum):
    """The interface through which a user came in."""

    PYTHON = "a function"
    SESSION = "a session of braid.onnxruntime, whose options have entries"
    COMMAND = "braid, whose flags are the options of functions"
    OPT = "braid-opt, which has other flags"


_door = ContextVar("door", default=_Door.PYTHON)

Value = int | str | Sequence[int] | Sequence[str]
"""The value of an option, or of an entry of one: a size, a name, several of either, or True."""


def flag_of(keyword: str) -> str:
    """Return what an option is called on a command line."""
    return _FLAGS.get(keyword, f"--{keyword.replace('_', '-')}")


def former_keywords(keyword: str) -> list[str]:
    """Return the keywords that an option had in earlier versions."""
    return [former for former, current in _FORMER_KEYWORDS.items() if current == keyword]


def with_current_keywords(given: Mapping[str, _Given]) -> dict[str, _Given]:
    """Return options under the keywords that they have now.

    Raises WrongArgumentError for an option that has its former keyword and its own.
    """
    for keyword in given:
        current = _FORMER_KEYWORDS.get(keyword)
        if current is not None and current in given:
            raise WrongArgumentError(
                f"{option_text(keyword)} is the former name of {option_text(current)}, and both "
                "are given",
                hint=f"leave {option_text(keyword)} out",
            )
    return {_FORMER_KEYWORDS.get(keyword, keyword): value for keyword, value in given.items()}


@contextmanager
def naming_flags(wanted: bool = True) -> Generator[None]:
    """Let messages name options as a command line has them, instead of keywords of Python.

    With `wanted` false they are keywords again, as for clients of a server that a command runs.
    """
    with _entering(_Door.COMMAND if wanted else _Door.PYTHON):
        yield


@contextmanager
def naming_entries() -> Generator[None]:
    """Let messages name options as the options of a session of `braid.onnxruntime` have them."""
    with _entering(_Door.SESSION):
        yield


@contextmanager
def naming_commands() -> Generator[None]:
    """Let messages name commands instead of functions, and options still as Python has them.

    That is for `braid-opt`, whose flags differ from the options of compilations.
    """
    with _entering(_Door.OPT):
        yield


@contextmanager
def _entering(door: _Door) -> Generator[None]:
    token = _door.set(door)
    try:
        yield
    finally:
        _door.reset(token)


def entry_of(keyword: str) -> str:
    """Return what an option is called in the options of a session."""
    return _ATTRIBUTES.get(keyword, f"braid.{keyword}")


def by_door(python: str, command: str) -> str:
    """Return the words for a user of Python, or those for one of a command line."""
    return command if _door.get() in (_Door.COMMAND, _Door.OPT) else python


def option_text(keyword: str, value: Value | Mapping[str, Value] | None = None) -> str:
    """Return an option with its value or entries as the user would write it, or its name alone.

    ```python
    option_text("dims", {"batch": 1, "width": 8})
    # dims={"batch": 1, "width": 8}, or --dim batch=1 --dim width=8 on a command line
    ```
    """
    door = _door.get()
    if door is _Door.SESSION:
        return _entry_text(keyword, value)
    if door is not _Door.COMMAND:
        return keyword if value is None else f"{keyword}={_literal(value)}"
    flag = flag_of(keyword)
    if value is None or value is True:
        return flag
    if not isinstance(value, Mapping):
        return f"{flag} {shlex.quote(_joined(value))}"
    texts = (f"{name}={_joined(each)}" for name, each in value.items())
    return " ".join(f"{flag} {shlex.quote(text)}" for text in texts)


def _entry_text(keyword: str, value: Value | Mapping[str, Value] | None) -> str:
    name = entry_of(keyword)
    if value is None:
        return name
    if keyword in _ATTRIBUTES:
        return f"{name} = {_literal(value)}"
    if isinstance(value, Mapping):
        text = ";".join(f"{each}={_joined(value[each])}" for each in value)
    else:
        text = str(int(value)) if isinstance(value, bool) else _joined(value)
    return f'add_session_config_entry("{name}", "{text}")'


def _literal(value: Value | Mapping[str, Value]) -> str:
    if isinstance(value, Mapping):
        entries = ", ".join(f'"{name}": {_literal(each)}' for name, each in value.items())
        return f"{{{entries}}}"
    if isinstance(value, int):
        return str(value)
    return f'"{value}"' if isinstance(value, str) else str(list(value))


def _joined(value: Value) -> str:
    return str(value) if isinstance(value, int | str) else ",".join(map(str, value))
