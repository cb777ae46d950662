"""From the text of a pipeline to passes, in the syntax that mlir-opt and xdsl-opt share.

    pipeline ::= element (`,` element)*
    element  ::= anchor `(` pipeline? `)` | name (`{` options `}`)?
    anchor   ::= `builtin.module` | `func.func` | `any`

The passes of xDSL run on modules, so an anchor only groups: a pass that is nested under
`func.func` sees the whole module. A name may also be that of a pipeline (`passes/pipelines.py`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import ArgSpecParseError

from braid.passes.infrastructure.options import create_pass, error_at
from braid.passes.infrastructure.registry import PassFactory, available_passes
from braid.passes.pipelines import PIPELINES
from braid.support.distribution import missing_package
from braid.support.errors import BraidError
from braid.support.option_names import by_door

_ANCHORS = frozenset({"builtin.module", "func.func", "any"})
_CLOSERS = {"(": ")", "{": "}", "[": "]"}
_QUOTED_OR_PUNCTUATION = re.compile(r'"(?:\\.|[^"\\])*"|[(){}\[\],]', re.DOTALL)
_NAME = re.compile(r"(?P<name>[\w.-]+)\s*")


def parse_pipeline(
    text: str, passes: Mapping[str, PassFactory] | None = None
) -> tuple[ModulePass, ...]:
    """Return the passes that `text` names, with their options, in order.

    `passes` are the ones that may be named, by default all that are installed. Raises
    `BraidError`, located within `text`, for a syntax error and an unknown pass or option.
    """
    if passes is None:
        return _of_installed(text)
    return tuple(_parse(text, 0, len(text), passes))


@lru_cache(maxsize=256)
def _of_installed(text: str) -> tuple[ModulePass, ...]:
    """Parse a pipeline; kept, since each compilation runs the same ones, and passes are
    immutable.
    """
    return tuple(_parse(text, 0, len(text), available_passes()))


@dataclass(frozen=True)
class _Element:
    """An element from `start` to `stop`: a name, and brackets at `opening` and `closing`.

    Without brackets these are both `stop`.
    """

    start: int
    stop: int
    opening: int
    closing: int


def _parse(
    text: str, begin: int, end: int, passes: Mapping[str, PassFactory]
) -> Iterator[ModulePass]:
    if not text[begin:end].strip():
        return
    for element in _split(text, begin, end):
        name = _name(text, element)
        opener = text[element.opening : min(element.opening + 1, element.stop)]
        if name in _ANCHORS:
            if opener != "(":
                raise error_at(text, element.opening, f"expected '(' after '{name}'")
            yield from _parse(text, element.opening + 1, element.closing, passes)
        elif opener == "(":
            message = f"cannot nest passes under '{name}'; expected one of {_list(_ANCHORS)}"
            raise error_at(text, element.start, message)
        elif name in PIPELINES:
            if opener:
                raise error_at(text, element.opening, f"pipeline '{name}' takes no options")
            for part in PIPELINES[name]:
                yield from _parse(part, 0, len(part), passes)
        elif name not in passes:
            raise _unknown_pass(text, element.start, name, passes)
        elif opener == "[":
            yield _mlir_opt_pass(text, element, _loaded(name, passes))
        else:
            options = (element.opening + 1, element.closing)
            yield create_pass(_loaded(name, passes), text, element.start, *options)


def _name(text: str, element: _Element) -> str:
    """Return the name that an element begins with; all else of it is in brackets."""
    match = _NAME.match(text, element.start, element.opening)
    if match is None:
        raise error_at(text, element.start, "expected the name of a pass")
    if match.end() < element.opening:
        raise _expected_comma(text, match.end(), match["name"])
    after = text[element.closing + 1 : element.stop].lstrip()
    if after:
        raise _expected_comma(text, element.stop - len(after), match["name"])
    return match["name"]


def _expected_comma(text: str, position: int, name: str) -> BraidError:
    return error_at(text, position, f"expected ',' or the end of the pipeline after '{name}'")


def _split(text: str, begin: int, end: int) -> Iterator[_Element]:
    """Yield the elements between the commas outside all brackets, without blanks around them."""
    openers: list[int] = []
    start, outer = begin, list[int]()
    for match in _QUOTED_OR_PUNCTUATION.finditer(text, begin, end):
        character, position = match[0], match.start()
        if character in _CLOSERS:
            openers.append(position)
        elif character in _CLOSERS.values():
            if not openers or _CLOSERS[text[openers[-1]]] != character:
                raise error_at(text, position, f"unbalanced '{character}'")
            opener = openers.pop()
            if not openers:
                outer += [opener, position]
        elif character == "," and not openers:
            yield _element(text, start, position, outer)
            start, outer = position + 1, []
    if openers:
        raise error_at(text, openers[-1], f"'{text[openers[-1]]}' is never closed")
    yield _element(text, start, end, outer)


def _element(text: str, start: int, stop: int, brackets: Sequence[int]) -> _Element:
    """Return the element with these outermost brackets; a third one is an error."""
    stripped = text[start:stop].strip()
    start = stop if not stripped else text.index(stripped, start)
    stop = start + len(stripped)
    opening, closing = brackets[:2] or (stop, stop)
    return _Element(start, stop, opening, closing)


def _loaded(name: str, passes: Mapping[str, PassFactory]) -> type[ModulePass]:
    """Return the class of a pass; raises `BraidError` where it needs what an extra installs."""
    try:
        return passes[name]()
    except ModuleNotFoundError as error:
        missing = missing_package(error, f"pass '{name}'")
        if missing is None:
            raise
        raise missing from error


def _mlir_opt_pass(text: str, element: _Element, pass_class: type[ModulePass]) -> ModulePass:
    """Parse xDSL's `mlir-opt[…]`, whose brackets hold a pipeline for the real mlir-opt."""
    spec = text[element.start : element.stop]
    try:
        return pass_class.from_spec(parse_spec(spec))
    except (ArgSpecParseError, ValueError) as error:
        raise error_at(
            text, element.start, f"malformed element '{spec}'", "options are written in braces"
        ) from error


def _unknown_pass(
    text: str, position: int, name: str, passes: Mapping[str, PassFactory]
) -> BraidError:
    similar = get_close_matches(name.lower(), [*passes, *PIPELINES], n=3)
    known = by_door("such as 'canonicalize,cse'", "braid-opt --help lists the passes")
    hint = f"did you mean {_list(similar)}?" if similar else known
    return error_at(text, position, f"unknown pass '{name}'", hint)


def _list(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))
