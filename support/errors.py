"""Define the errors that braid raises when a user's input is wrong.

Everything a user can cause is raised as a `BraidError`; the tools print it as one
diagnostic and exit with status 1. An `assert` is for braid's own bugs only.
"""

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import cast


@dataclass(frozen=True)
class SourceLocation:
    """A place in a user's file; line and column count from 1, 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


@dataclass(frozen=True)
class Note:
    """A place that helps to understand an error, such as where the offending value is defined."""

    message: str
    location: SourceLocation | None = None

    def __str__(self) -> str:
        prefix = f"{self.location}: " if self.location is not None else ""
        return f"{prefix}note: {self.message}"


_MOST_BESIDE = 1000
"""Names of a directory that are compared with one that it does not have."""
_LONGEST = 4000
"""Characters of a message; names in files may be far longer."""


def _shortened(message: str) -> str:
    if len(message) <= _LONGEST:
        return message
    return f"{message[: _LONGEST * 3 // 4]} … {message[-_LONGEST // 4 :]}"


class BraidError(Exception):
    """A mistake in the user's input, with the way out.

    `message` describes the error, with the expected and the actual value if there are two;
    `hint` says how to solve it; `notes` point at other places. Prints as
    `file:line:col: error: message` and, on lines of their own, the notes and `hint: …`.
    """

    def __init__(
        self,
        message: str,
        *,
        location: SourceLocation | None = None,
        hint: str | None = None,
        notes: Sequence[Note] = (),
    ) -> None:
        message = _shortened(message)
        super().__init__(message)
        self.message = message
        self.location = location
        self.hint = hint
        self.notes = tuple(notes)

    def __str__(self) -> str:
        prefix = f"{self.location}: " if self.location is not None else ""
        suffix = f"\nhint: {self.hint}" if self.hint else ""
        notes = "".join(f"\n{note}" for note in self.notes)
        return f"{prefix}error: {self.message}{notes}{suffix}"


class UnsupportedError(BraidError):
    """The input is well formed, but braid cannot do this (yet)."""


class WrongArgumentError(BraidError, TypeError):
    """A call has an argument that the function does not take."""


class InfeasibleError(BraidError):
    """No answer satisfies the constraints the user gave (a byte budget, a memory limit)."""


def was_interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused an error: modules in C report it as an error of their own."""
    seen = set[int]()  # errors that were raised from each other go in circles
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


_NONE: Mapping[str, object] = MappingProxyType({})


def check_kinds(
    *,
    texts: Mapping[str, object] = _NONE,
    paths: Mapping[str, object] = _NONE,
    flags: Mapping[str, object] = _NONE,
) -> None:
    """Raise BraidError unless these are texts, paths, and True or False, or None."""
    expected = (
        (texts, str, "text"),
        (paths, (str, os.PathLike), "the path of a file"),
        (flags, bool, "True or False"),
    )
    for values, kinds, what in expected:
        for name, value in values.items():
            if value is not None and not isinstance(value, kinds):
                raise BraidError(f"{name} is {value!r:.200}, expected {what}")


def whole_numbers(values: object) -> tuple[int, ...] | None:
    """Return the numbers of a sequence or a set as ints, numpy's too; None for other values."""
    if not isinstance(values, Sequence | Set) or isinstance(values, str | bytes):
        return None
    numbers = cast("Sequence[object] | Set[object]", values)
    if not all(isinstance(number, Integral) for number in numbers):
        return None
    return tuple(int(cast(int, number)) for number in numbers)


def check_threads(threads: object, what: str = "threads", least: int = 0) -> None:
    """Raise `BraidError` unless a number of threads is one."""
    if isinstance(threads, bool) or not isinstance(threads, Integral):
        raise BraidError(f"{what} is {threads!r}, expected a whole number")
    threads = int(threads)
    if threads < least:
        raise BraidError(
            f"{what} is {threads}, expected at least {least}",
            hint="0 stands for all CPUs" if least == 0 else None,
        )
    if threads >= 2**31:
        raise BraidError(f"{what} is {threads}, expected at most {2**31 - 1}")


def did_you_mean(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """Return a hint with the known name that is most like this one; None if no name
    is similar.

    `alike`, from 0 to 1, is how much two names must have in common.
    """
    from difflib import get_close_matches  # where something is wrong

    similar = get_close_matches(name, list(known), n=1, cutoff=alike)
    return f"did you mean '{similar[0]}'?" if similar else None


def missing_file_hint(path: str | os.PathLike[str]) -> str | None:
    """Return a hint for a missing file at `path`: the file next to it with the most similar name.

    Else where its name begins; None where there is a file.
    """
    where = Path(path)
    directory = where.parent
    try:
        if os.path.lexists(where):
            return None
        if not directory.is_dir():
            return f"there is no directory '{directory}'"
        with os.scandir(directory) as entries:
            beside = [entry.name for entry in islice(entries, _MOST_BESIDE)]
    except (OSError, ValueError):  # a name that no file can have, or a directory that is not ours
        return None
    similar = did_you_mean(where.name, beside, alike=0.75)
    return similar or f"it is looked for in '{directory.absolute()}'"
