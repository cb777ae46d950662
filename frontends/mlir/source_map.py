"""Where the text of a module has its ops, values, blocks, symbols and regions.

Positions count characters of the text from 0; MLIR calls the like `AsmParserState`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

MOST_FAULTS = 100
"""Errors of one text that are noted; nothing is read after that many."""


class TextRange(NamedTuple):
    """Characters of a text from `start` to before `end`."""

    start: int
    end: int

    def holds(self, position: int) -> bool:
        """Return whether the cursor at `position` touches this range."""
        return self.start <= position <= self.end


@dataclass(frozen=True)
class SyntaxFault:
    """A syntax error at one position; `op` is the name of an op that no dialect has."""

    place: TextRange
    message: str
    notes: tuple[tuple[TextRange, str], ...] = ()
    op: str = ""


@dataclass
class Scope:
    """A region, in which names are visible that are not outside; `parent` is None for the whole
    text."""

    place: TextRange
    parent: "Scope | None"


@dataclass(frozen=True)
class Definition:
    """A name with its sigil, such as `%x`, `^bb0` or `#map`, where it is defined.

    `values` are those of an SSA name: none where its op could not be parsed.
    """

    name: str
    place: TextRange
    scope: Scope
    values: tuple[SSAValue, ...] = ()


@dataclass(frozen=True)
class ParsedOp:
    """An op that was parsed: its text, the position of its name there, and its scope."""

    op: Operation
    place: TextRange
    name: TextRange
    scope: Scope


@dataclass
class SourceMap:
    """The results of one parse of a text, in parsing order."""

    whole: Scope
    faults: list[SyntaxFault] = field(default_factory=list[SyntaxFault])
    scopes: list[Scope] = field(default_factory=list[Scope])
    definitions: list[Definition] = field(default_factory=list[Definition])
    ops: list[ParsedOp] = field(default_factory=list[ParsedOp])


def innermost(scopes: Sequence[Scope], whole: Scope, position: int) -> Scope:
    """Return the smallest of `scopes` around `position`, by default `whole`."""
    around = (scope for scope in scopes if scope.place.start < position < scope.place.end)
    return max(around, key=lambda scope: scope.place.start, default=whole)


Stop = Callable[[], bool]
"""Whether the result is no longer needed."""


class StoppedError(BaseException):
    """The result is no longer needed; no handler of errors takes this, as for cancellation."""
