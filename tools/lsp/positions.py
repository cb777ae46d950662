"""Between characters of a text and the lines and code units that an editor counts in."""

from bisect import bisect_right

from lsprotocol.types import Position, PositionEncodingKind, Range

from braid.frontends.mlir.source_map import TextRange

_Encoding = PositionEncodingKind | str


class TextPositions:
    """The lines of one text; columns are in code units of `encoding`, UTF-16 by default."""

    def __init__(self, text: str, encoding: _Encoding = PositionEncodingKind.Utf16) -> None:
        """Find the lines of `text`, which end in `\\n`."""
        self._text = text
        self._starts = [0]
        position = text.find("\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = text.find("\n", position + 1)
        self._encoding = encoding
        self._is_plain = text.isascii() or encoding == PositionEncodingKind.Utf32

    def position(self, offset: int) -> Position:
        """Return the line and column of the character at `offset`."""
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        return Position(line, self._units(self._text[start:offset]))

    def range(self, place: TextRange, start: int = 0) -> Range:
        """Return the editor's name of `place`, which counts from `start`."""
        return Range(self.position(start + place.start), self.position(start + place.end))

    def line_start(self, line: int) -> int:
        """Return the first character of a line, the end of the text for one after its last."""
        return self._starts[line] if line < len(self._starts) else len(self._text)

    def offset(self, position: Position) -> int:
        """Return the character at `position`; columns after a line's end are its end."""
        start = self.line_start(position.line)
        end = self._text.find("\n", start)
        line = self._text[start : len(self._text) if end < 0 else end]
        if self._is_plain:
            return start + min(position.character, len(line))
        units = 0
        for index, character in enumerate(line):
            if units >= position.character:
                return start + index
            units += self._units(character)
        return start + len(line)

    def _units(self, text: str) -> int:
        if self._is_plain:
            return len(text)
        if self._encoding == PositionEncodingKind.Utf8:
            return len(text.encode(errors="replace"))
        return len(text) + sum(ord(character) > 0xFFFF for character in text)
