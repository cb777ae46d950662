"""xDSL's parser, extended by all forms of locations and by the locations of tokens."""

import re
from bisect import bisect_right
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NoneAttr,
    StringAttr,
)
from xdsl.parser import ParserState
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from braid.frontends.mlir.checked_parser import CheckedParser

_LOCATION_ALIAS = re.compile(r"^#([\w$.]+) *= *(loc\(.*\))[ \t]*$", re.MULTILINE | re.ASCII)
_FUSED = re.compile(r"fused\s*<")


class LinearLexer(MLIRLexer):
    """xDSL's lexer with a string pattern of linear time.

    The original pattern takes exponential time for a string that does not end.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')


class LocationParser(CheckedParser):
    """A parser that reads every form of location and maps positions to lines of the file."""

    lexer_class: ClassVar[type[LinearLexer]] = LinearLexer

    def __init__(self, context: Context, text: str, file: str, line_offset: int) -> None:
        """Begin at the start of `text`, which follows `line_offset` lines of `file`."""
        super().__init__(context, "", file)
        self._resume_from(ParserState(self.lexer_class(Input(text, file))))
        self._file = StringAttr(file)
        self._line_offset = line_offset
        self._line_starts = _line_starts(text)
        self._location_aliases = {m[1]: m.start(2) for m in _LOCATION_ALIAS.finditer(text)}
        self._locations: dict[str, LocationAttr | None] = {}  # None: while it is read

    def _location_at(self, position: int) -> FileLineColLoc:
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return FileLineColLoc(self._file, IntAttr(line + self._line_offset), IntAttr(column))

    def _parse_alias_def(self) -> None:
        """Parse an alias definition; uses of a location alias may precede it."""
        start = self.pos
        match = _LOCATION_ALIAS.match(self.lexer.input.content, start)
        if match is None:
            super()._parse_alias_def()
            return
        self._location_of_alias(match[1])
        self._resume_from(match.end())

    def _parse_location(self) -> LocationAttr:
        """Parse a location, also a file range, a fused one with metadata, and an alias."""
        token = self._current_token
        if token.kind is MLIRTokenKind.HASH_IDENT and token.text[1:] in self._location_aliases:
            self._consume_token()
            return self._location_of_alias(token.text[1:])
        match = _FUSED.match(self.lexer.input.content, self.pos)
        if match is not None:
            self._resume_from(match.end())
            self.parse_attribute()  # metadata, which no diagnostic shows
            self.parse_punctuation(">")
            locations = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
            return FusedLoc(tuple(locations), NoneAttr())
        location = super()._parse_location()
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to"):
            self.parse_optional_integer(allow_boolean=False, allow_negative=False)
            self.parse_punctuation(":")
            self.parse_integer(False, False)
        return location

    def _location_of_alias(self, name: str) -> LocationAttr:
        if name not in self._locations:
            self._locations[name] = None
            position = self.pos
            self._resume_from(self._location_aliases[name])
            self._locations[name] = self.parse_optional_location()
            self._resume_from(position)
        location = self._locations[name]
        if location is None:
            self.raise_error(f"the location alias '#{name}' refers to itself")
        return location


def _line_starts(text: str) -> list[int]:
    starts = [0]
    position = text.find("\n")
    while position != -1:
        starts.append(position + 1)
        position = text.find("\n", position + 1)
    return starts
