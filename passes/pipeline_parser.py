"""From the text of a pipeline to passes, in the syntax that mlir-opt and xdsl-opt share.

    pipeline ::= element (`,` element)*
    element  ::= anchor `(` pipeline? `)` | name (`{` options `}`)?
    anchor   ::= `builtin.module` | `func.func` | `any`

The passes of xDSL run on modules, so an anchor only groups: a pass that is nested under
`func.func` sees the whole module. A name may also be that of a pipeline (`passes/pipelines.py`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import ArgSpecParseError

from braid.errors import BraidError, SourceLocation
from braid.passes.options import create_pass
from braid.passes.pipelines import PIPELINES
from braid.passes.registry import PassFactory, available_passes

PIPELINE_FILE = "<pass-pipeline>"
"""What a diagnostic about the text of a pipeline names as the file."""

_ANCHORS = frozenset({"builtin.module", "func.func", "any"})
_CLOSERS = {"(": ")", "{": "}", "[": "]"}
_QUOTED_OR_PUNCTUATION = re.compile(r'"(?:\\.|[^"\\])*"|[(){}\[\],]', re.DOTALL)


def parse_pipeline(
    text: str, passes: Mapping[str, PassFactory] | None = None
) -> tuple[ModulePass, ...]:
    """The passes that `text` names, with their options, in order.

    `passes` are the ones that may be named, by default all that are installed. Raises
    `BraidError`, located within `text`, for a syntax error and an unknown pass or option.
    """
    known = available_passes() if passes is None else passes
    return tuple(_parse(text, 0, len(text), known))


def _parse(
    text: str, begin: int, end: int, passes: Mapping[str, PassFactory]
) -> Iterator[ModulePass]:
    for start, stop in _split(text, begin, end):
        if start == stop:
            if text[begin:end].strip():
                raise _error("expected the name of a pass", start)
            continue
        bracket = next((i for i in range(start, stop) if text[i] in _CLOSERS), stop)
        name = text[start:bracket].rstrip()
        opener = text[bracket : min(bracket + 1, stop)]
        if opener and text[stop - 1] != _CLOSERS[opener]:
            raise _error(f"expected ',' or the end of the pipeline after '{name}'", stop)
        if opener == "(":
            if name not in _ANCHORS:
                raise _error(
                    f"cannot nest passes under '{name}'; expected one of {_list(_ANCHORS)}", start
                )
            yield from _parse(text, bracket + 1, stop - 1, passes)
        elif name in PIPELINES and not opener:
            for element in PIPELINES[name]:
                yield from _parse(element, 0, len(element), passes)
        elif name not in passes:
            raise _unknown_pass(name, start, passes)
        elif opener == "[":
            yield _mlir_opt_pass(text[start:stop], passes[name](), start)
        else:
            location = SourceLocation(PIPELINE_FILE, 1, start + 1)
            yield create_pass(passes[name](), text[bracket + 1 : stop - 1], location)


def _split(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The bounds of the elements between the commas outside all brackets, without blanks."""
    closers: list[tuple[str, int]] = []
    start = begin
    for match in _QUOTED_OR_PUNCTUATION.finditer(text, begin, end):
        character, position = match[0], match.start()
        if character in _CLOSERS:
            closers.append((_CLOSERS[character], position))
        elif character in _CLOSERS.values():
            if not closers or closers.pop()[0] != character:
                raise _error(f"unbalanced '{character}'", position)
        elif character == "," and not closers:
            yield _strip(text, start, position)
            start = position + 1
    if closers:
        raise _error(f"'{text[closers[-1][1]]}' is never closed", closers[-1][1])
    yield _strip(text, start, end)


def _strip(text: str, start: int, stop: int) -> tuple[int, int]:
    while start < stop and text[start].isspace():
        start += 1
    while start < stop and text[stop - 1].isspace():
        stop -= 1
    return start, stop


def _mlir_opt_pass(element: str, pass_class: type[ModulePass], start: int) -> ModulePass:
    """xDSL's `mlir-opt[…]`, whose brackets hold a pipeline for the real mlir-opt."""
    try:
        return pass_class.from_spec(parse_spec(element))
    except (ArgSpecParseError, ValueError) as error:
        raise _error(f"malformed element '{element}'", start) from error


def _unknown_pass(name: str, start: int, passes: Mapping[str, PassFactory]) -> BraidError:
    from difflib import get_close_matches

    similar = get_close_matches(name, [*passes, *PIPELINES], n=3)
    hint = f"did you mean {_list(similar)}?" if similar else "--help lists the passes"
    return _error(f"unknown pass '{name}'", start, hint)


def _list(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _error(message: str, position: int, hint: str | None = None) -> BraidError:
    return BraidError(message, location=SourceLocation(PIPELINE_FILE, 1, position + 1), hint=hint)
