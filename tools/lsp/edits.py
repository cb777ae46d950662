"""Completions, with the text that each replaces."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lsprotocol.types import CompletionItem


@dataclass(frozen=True)
class Completion:
    """An item that stands in place of the last `replaced` characters before the cursor."""

    item: CompletionItem
    replaced: int


def items_of(word: str, items: Iterable[CompletionItem]) -> Iterator[Completion]:
    """Yield the items that begin with `word`, which they replace."""
    for item in items:
        if item.label.startswith(word):
            yield Completion(item, len(word))
