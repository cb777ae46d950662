"""Completion of ops, dialects, names and attributes, and of passes in comments."""

import re
from collections.abc import Iterator

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    MarkupContent,
    MarkupKind,
    Range,
    TextEdit,
)
from xdsl.context import Context
from xdsl.ir import Dialect

from braid.frontends.mlir.source_map import Definition
from braid.support.errors import BraidError
from braid.tools.lsp.analysis import Analysis, Part
from braid.tools.lsp.attribute_docs import attribute_docs
from braid.tools.lsp.documentation import summary_of
from braid.tools.lsp.edits import Completion, items_of
from braid.tools.lsp.pipelines import completions_in_comment

_NAME = re.compile(r"(?P<word>[%@^][\w$.-]*)$")
_TYPE_OR_ATTRIBUTE = re.compile(r"(?P<word>[#!][\w.]*)$")
_OP = re.compile(r'^[ \t]*(?:%[^=]*=\s*)?"?(?P<word>[A-Za-z_][\w.]*)?$')
_KEY = re.compile(r"[{,]\s*(?P<word>braid\.\w*)$")
_KINDS = {
    "%": CompletionItemKind.Variable,
    "@": CompletionItemKind.Function,
    "^": CompletionItemKind.Reference,
    "#": CompletionItemKind.Constant,
    "!": CompletionItemKind.TypeParameter,
}
TRIGGERS = [".", "%", "@", "^", "#", "!", "-", "{", ",", "="]
"""Characters after which editors ask by themselves."""


def completions_at(analysis: Analysis, position: int, context: Context) -> list[CompletionItem]:
    """Return the completions at `position` of the text. Dialects are loaded into `context`."""
    start = analysis.text.rfind("\n", 0, position) + 1
    prefix = analysis.text[start:position]
    found = completions_in_comment(prefix)
    if found is None:
        found = list(_in_code(analysis, position, prefix, context))
    return [_with_edit(analysis, position, each) for each in found]


def _with_edit(analysis: Analysis, position: int, completion: Completion) -> CompletionItem:
    """Return the item with the text that it replaces: editors differ in what a word is."""
    item, positions = completion.item, analysis.positions
    begin = positions.position(position - completion.replaced)
    place = Range(begin, positions.position(position))
    return CompletionItem(
        label=item.label,
        kind=item.kind,
        detail=item.detail,
        documentation=item.documentation,
        filter_text=item.label,
        text_edit=TextEdit(place, item.insert_text or item.label),
    )


def _in_code(
    analysis: Analysis, position: int, prefix: str, context: Context
) -> Iterator[Completion]:
    if "//" in prefix:
        return
    part = analysis.part_at(position)
    if (key := _KEY.search(prefix)) is not None:
        yield from items_of(key["word"], _attribute_names())
    elif (name := _NAME.search(prefix)) is not None and part is not None:
        yield from items_of(name["word"], _names(part, position, name["word"][0]))
    elif (kind := _TYPE_OR_ATTRIBUTE.search(prefix)) is not None:
        sigil = kind["word"][0]
        aliases = _names(part, position, sigil) if part is not None else ()
        yield from items_of(kind["word"], [*aliases, *_attributes(kind["word"], context)])
    elif (op := _OP.search(prefix)) is not None:
        word = op["word"] or ""
        yield from items_of(word, _ops(word, analysis.text, context))


def _attribute_names() -> Iterator[CompletionItem]:
    for name, meaning in attribute_docs().items():
        yield CompletionItem(
            name, kind=CompletionItemKind.Property, documentation=_markdown(meaning)
        )


def _names(part: Part, position: int, sigil: str) -> Iterator[CompletionItem]:
    for name, definition in part.names.visible_at(position - part.start, sigil).items():
        yield CompletionItem(name, kind=_KINDS[sigil], detail=_type_of(definition))


def _type_of(definition: Definition) -> str | None:
    return ", ".join(str(value.type) for value in definition.values) or None


def _ops(word: str, text: str, context: Context) -> Iterator[CompletionItem]:
    """Yield the ops of the dialect of `word`; without one, dialects and ops of those in `text`."""
    dialect, dot, _ = word.partition(".")
    names = sorted(context.registered_dialect_names)
    for name in [dialect] if dot else names:
        if name in names and (dot or f"{name}." in text):
            for op in _loaded(name, context).operations:
                yield CompletionItem(
                    op.name,
                    kind=CompletionItemKind.Function,
                    documentation=_markdown(summary_of(op)),
                )
    if not dot:
        for name in names:
            yield CompletionItem(name, kind=CompletionItemKind.Module, detail="a dialect")


def _attributes(word: str, context: Context) -> Iterator[CompletionItem]:
    """Yield the attributes, or types, of the dialect of `word`; without one, the dialects."""
    sigil, (dialect, dot, _) = word[0], word[1:].partition(".")
    names = sorted(context.registered_dialect_names)
    if not dot:
        yield from (
            CompletionItem(f"{sigil}{name}", kind=CompletionItemKind.Module) for name in names
        )
    elif dialect in names:
        for attribute in _loaded(dialect, context).attributes:
            yield CompletionItem(
                f"{sigil}{attribute.name}",
                kind=_KINDS[sigil],
                documentation=_markdown(summary_of(attribute)),
            )


def _loaded(name: str, context: Context) -> Dialect:
    """Return a dialect of the context."""
    if (dialect := context.get_optional_dialect(name)) is None:
        raise BraidError(f"dialect '{name}' is not registered")
    return dialect


def _markdown(text: str) -> MarkupContent | None:
    return MarkupContent(MarkupKind.Markdown, text) if text else None
