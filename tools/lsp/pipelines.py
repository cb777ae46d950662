"""Passes, their options and flags in comments that run `braid-opt`.

// RUN: braid-opt %s -p select-layouts{exact=true},apply-layouts
"""

import re
import types
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

from lsprotocol.types import CompletionItem, CompletionItemKind

from braid.frontends.mlir.source_map import TextRange
from braid.passes.infrastructure.options import PassOption, pass_options
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.infrastructure.registry import available_passes
from braid.passes.pipelines import PIPELINES
from braid.support.errors import BraidError
from braid.tools.lsp.analysis import Problem
from braid.tools.lsp.documentation import summary_of
from braid.tools.lsp.edits import Completion, items_of
from braid.tools.opt.flags import build_parser, names_of_flags

_COMMENT = re.compile(r"^[ \t]*//(?P<command>[^\n]*\bbraid-opt\b[^\n]*)", re.MULTILINE)
_PIPELINE = re.compile(
    r"(?<=\s)(?:-p|--?passes|--?pass-pipeline)[= ]"
    r"(?:'(?P<single>[^']*)'?|\"(?P<double>[^\"]*)\"?|(?P<bare>(?:[^\s'\"{]|\{[^}]*\}?)+))"
)
_PARTS = ("single", "double", "bare")
_OPTION_VALUE = re.compile(
    r"(?P<pass>[\w-]+)\{(?:[^{}]*[\s{])?(?P<option>[\w-]+)=(?P<word>[\w.]*)$"
)
_OPTION = re.compile(r"(?P<pass>[\w-]+)\{(?:[^{}]*\s)?(?P<word>[\w-]*)$")
_PASS = re.compile(r"(?:^|[,(])\s*(?P<word>[\w-]*)$")
_EMPTY = re.compile(r"(?<=\s)(?:-p|--?passes|--?pass-pipeline)[= ]['\"]?$")
_FLAG = re.compile(r"\s(?P<word>--?[\w-]*)$")


def pipeline_problems(text: str) -> Iterator[Problem]:
    """Yield errors in pipelines in comments; one that is run by `not` may be wrong."""
    for comment in _COMMENT.finditer(text):
        if re.search(r"\bnot\b", comment["command"]) is not None:
            continue
        for match in _PIPELINE.finditer(text, comment.start("command"), comment.end("command")):
            part = next(name for name in _PARTS if match[name] is not None)
            if "%" in match[part]:
                continue  # lit puts something else there
            try:
                parse_pipeline(match[part])
            except BraidError as error:
                column = error.location.column if error.location is not None else 1
                start = match.start(part) + max(column - 1, 0)
                end = max(start + 1, _end_of_word(text, start))
                yield Problem(TextRange(start, end), error.message, error.hint)


def _end_of_word(text: str, start: int) -> int:
    match = re.compile(r"[\w-]*").match(text, start)
    return match.end() if match is not None else start


def completions_in_comment(prefix: str) -> list[Completion] | None:
    """Return the completions after `prefix`, a line up to the cursor.

    The result is None if that is no comment that runs `braid-opt`.
    """
    if (comment := _COMMENT.match(prefix)) is None:
        return None
    if _EMPTY.search(prefix) is not None:
        return list(items_of("", passes()))
    pipelines = list(_PIPELINE.finditer(prefix, comment.start("command")))
    if pipelines and pipelines[-1].end() == len(prefix):
        match = pipelines[-1]
        return _in_pipeline(next(match[name] for name in _PARTS if match[name] is not None))
    if (flag := _FLAG.search(prefix)) is not None:
        return list(items_of(flag["word"], _flags()))
    return []


def _in_pipeline(text: str) -> list[Completion]:
    if (value := _OPTION_VALUE.search(text)) is not None:
        option = next((o for o in _options(value["pass"]) if o.name == value["option"]), None)
        values = _values(option.type) if option is not None else ()
        return list(items_of(value["word"], [_item(each, "", "EnumMember") for each in values]))
    if (option := _OPTION.search(text)) is not None:
        items = [
            _item(each.name, str(each), "Property", f"{each.name}=")
            for each in _options(option["pass"])
        ]
        return list(items_of(option["word"], items))
    if (name := _PASS.search(text)) is not None:
        return list(items_of(name["word"], passes()))
    return []


@cache
def passes() -> list[CompletionItem]:
    """Return all passes and named pipelines; the classes of passes are not loaded for this."""
    pipelines = [_item(name, ",".join(parts), "Module") for name, parts in PIPELINES.items()]
    return [*(_item(name, "a pass", "Function") for name in sorted(available_passes())), *pipelines]


def documentation_of_pass(name: str) -> str | None:
    """Return the description of a pass and its options, as Markdown; None if it does not exist."""
    factory = available_passes().get(name)
    if factory is None:
        return None
    options = "\n".join(f"- `{option}`" for option in _options(name))
    return "\n\n".join(part for part in (f"`{name}`", summary_of(factory()), options) if part)


def pass_at(text: str, position: int) -> tuple[TextRange, str] | None:
    """Return the name of a pass in a comment at `position`, with its description; None without
    one."""
    start = text.rfind("\n", 0, position) + 1
    comment = _COMMENT.match(text, start)
    if comment is None or position > comment.end():
        return None
    for match in re.compile(r"[a-z][\w-]+").finditer(text, comment.start("command"), comment.end()):
        place = TextRange(*match.span())
        if place.holds(position) and (found := documentation_of_pass(match[0])) is not None:
            return place, found
    return None


def _options(name: str) -> tuple[PassOption, ...]:
    factory = available_passes().get(name)
    try:
        return pass_options(factory()) if factory is not None else ()
    except (ImportError, NameError, BraidError):
        return ()  # a package that is missing, which running the pass reports


def _values(type: Any) -> tuple[str, ...]:
    """Return the values of an option that has few of them."""
    if get_origin(type) is Literal:
        return tuple(str(value) for value in get_args(type))
    if get_origin(type) is types.UnionType:
        return tuple(value for each in get_args(type) for value in _values(each))
    return ("true", "false") if type is bool else ()


@cache
def _flags() -> list[CompletionItem]:
    names = sorted(names_of_flags(build_parser()))
    flags = [_item(f"--{name}", "a flag of braid-opt", "Keyword") for name in names]
    return [*flags, *(_item(f"--{item.label}", "a pass", "Function") for item in passes())]


def _item(label: str, detail: str, kind: str, inserted: str | None = None) -> CompletionItem:
    return CompletionItem(
        label, kind=CompletionItemKind[kind], detail=detail or None, insert_text=inserted
    )
