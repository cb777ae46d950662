"""The size of a text with its aliases expanded, as parsers and printers expand them.

Sixty aliases, each of which names the previous one twice, expand to 2^60 attributes.
"""

import re
from collections import Counter
from dataclasses import dataclass

_DEFINITION = re.compile(r"([!#][A-Za-z0-9_$.-]+)[ \t\n]*=(?!=)")
_NAME = re.compile(r"[!#][A-Za-z0-9_$.-]+")
_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[!#][A-Za-z0-9_$.-]+|[(\[{<]|[)\]}>]|\n', re.ASCII
)


@dataclass(frozen=True)
class Expansion:
    """The expanded form of an alias: its number of characters, and the depth of its brackets."""

    characters: int
    depth: int


@dataclass(frozen=True)
class _Alias:
    position: int
    own: Expansion
    named: tuple[tuple[str, int], ...]
    """The aliases that it names, each with the number of brackets around it."""


def expansions(text: str) -> tuple[dict[str, int], dict[str, Expansion], int]:
    """Return the positions of alias definitions, their expansions, and the size of the whole text.

    An alias that refers to itself counts unexpanded, since parsers reject it.
    """
    aliases: dict[str, _Alias] = {}
    outside = Counter[str]()
    if _DEFINITION.search(text) is not None:
        outside.update(_NAME.findall(text))
    for match in _DEFINITION.finditer(text) if outside else ():
        alias = aliases[match[1]] = _alias(text, match)
        outside[match[1]] -= 1
        outside.subtract(name for name, _ in alias.named)
    known = _expanded(aliases)
    total = len(text)
    for name, count in outside.items():
        if name in known and count > 0:
            total += count * known[name].characters
    return {name: alias.position for name, alias in aliases.items()}, known, total


def _alias(text: str, definition: re.Match[str]) -> _Alias:
    """Read the definition of an alias: it ends at the first line after which no bracket is open."""
    level = deepest = 0
    named: list[tuple[str, int]] = []
    position, is_empty = definition.end(), True
    while (token := _TOKEN.search(text, position)) is not None:
        between = text[position : token.start()]
        is_empty = is_empty and not between.strip()
        position, word = token.end(), token[0]
        if word == "\n":
            if level <= 0 and not is_empty:
                break
            continue
        is_empty = False
        if word in ("(", "[", "{", "<"):
            level += 1
            deepest = max(deepest, level)
        elif word in (")", "]", "}", ">"):
            level -= 1
        elif word[0] in "!#":
            named.append((word, level))
    own = Expansion(position - definition.end(), deepest)
    return _Alias(definition.start(), own, tuple(named))


def _expanded(aliases: dict[str, _Alias]) -> dict[str, Expansion]:
    known: dict[str, Expansion] = {}
    for first in aliases:
        pending = [first]
        entered: set[str] = set()
        while pending:
            name = pending[-1]
            alias = aliases[name]
            missing = [n for n, _ in alias.named if n in aliases and n not in known]
            if name not in known and missing and name not in entered:
                entered.add(name)
                pending.extend(n for n in missing if n not in entered)
                continue
            pending.pop()
            if name not in known:
                known[name] = _with_named(alias, known)
    return known


def _with_named(alias: _Alias, known: dict[str, Expansion]) -> Expansion:
    characters, depth = alias.own.characters, alias.own.depth
    for name, level in alias.named:
        if (named := known.get(name)) is not None:
            characters += named.characters
            depth = max(depth, level + named.depth)
    return Expansion(characters, depth)
