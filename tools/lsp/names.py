"""Names in the text of a module: which definition each means, and where it is used."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from braid.frontends.mlir.source_map import Definition, Scope, SourceMap, TextRange, innermost

_TOKEN = re.compile(
    r'(?P<name>@"(?:[^"\\\n]|\\.)*"|[%^@#!][\w$.-]+)(?:#(?P<index>[0-9]+))?'
    r'|"(?:[^"\\\n]|\\.)*"|//[^\n]*',
    re.ASCII,
)


class Use(NamedTuple):
    """A name in the text; `number` counts the values of `%x#1`."""

    name: str
    place: TextRange
    number: int


class Names:
    """The names of one part of a text, by its map."""

    def __init__(self, text: str, map: SourceMap) -> None:
        """Collect what is defined in `text`."""
        self._text = text
        self._map = map
        self._definitions: dict[str, list[Definition]] = defaultdict(list)
        self.symbols: dict[Operation, Definition] = {}
        """The definitions of symbols by op."""
        for definition in map.definitions:
            self._definitions[definition.name].append(definition)
        for parsed in map.ops:
            symbol = parsed.op.properties.get("sym_name") or parsed.op.attributes.get("sym_name")
            if isinstance(symbol, StringAttr):
                name = f"@{symbol.data}"
                start = text.find(name, parsed.name.end, parsed.place.end)
                place = TextRange(start, start + len(name)) if start >= 0 else parsed.name
                self.symbols[parsed.op] = Definition(name, place, parsed.scope)
                self._definitions[name].append(self.symbols[parsed.op])

    def use_at(self, position: int) -> Use | None:
        """Return the name that the cursor at `position` touches."""
        line = self._text.rfind("\n", 0, position) + 1
        end = self._text.find("\n", position)
        uses = self._uses(line, len(self._text) if end < 0 else end)
        return next((use for use in uses if use.place.holds(position)), None)

    def definition_of(self, use: Use) -> Definition | None:
        """Return the meaning of a name at its position, None if nothing defines it."""
        known = self._definitions.get(_plain(use.name), ())
        if (itself := next((each for each in known if each.place == use.place), None)) is not None:
            return itself
        if (table := self._symbol_before(use)) is not None:
            known = [each for each in known if _is_within(each.scope, table)]
            return known[0] if known else None
        scope: Scope | None = innermost(self._map.scopes, self._map.whole, use.place.start)
        while scope is not None:
            for each in known:
                if each.scope is scope:
                    return each
            scope = scope.parent
        return None

    def uses_of(self, definition: Definition) -> Iterator[Use]:
        """Yield the names that mean `definition`, with that itself, in textual order."""
        for use in self._uses(0, len(self._text)):
            if _plain(use.name) == definition.name and self.definition_of(use) is definition:
                yield use

    def visible_at(self, position: int, sigil: str) -> dict[str, Definition]:
        """Return what names with `sigil` mean at `position`."""
        found: dict[str, Definition] = {}
        scope: Scope | None = innermost(self._map.scopes, self._map.whole, position)
        while scope is not None:
            for name, definitions in self._definitions.items():
                if name.startswith(sigil) and name not in found:
                    here = [each for each in definitions if each.scope is scope]
                    if here:
                        found[name] = here[0]
            scope = scope.parent
        return found

    def _symbol_before(self, use: Use) -> TextRange | None:
        """Return the text of the op that `@a` is, for `@b` in `@a::@b`; None for other names."""
        start = use.place.start
        if not use.name.startswith("@") or self._text[max(start - 2, 0) : start] != "::":
            return None
        before = self.use_at(start - 2)
        definition = self.definition_of(before) if before is not None else None
        for op, symbol in self.symbols.items():
            if symbol is definition:
                return next(each.place for each in self._map.ops if each.op is op)
        return None

    def _uses(self, start: int, end: int) -> Iterator[Use]:
        for match in _TOKEN.finditer(self._text, start, end):
            if match["name"] is not None:
                place = TextRange(match.start("name"), match.end("name"))
                yield Use(match["name"], place, int(match["index"] or 0))


def _plain(name: str) -> str:
    """Return a symbol's name without quotes."""
    return f"@{name[2:-1]}" if name.startswith('@"') else name


def _is_within(scope: Scope, place: TextRange) -> bool:
    return place.start <= scope.place.start and scope.place.end <= place.end
