"""Reading attribute dictionaries quickly: the forms that fill large files, by regular expressions.

xDSL's parser takes about 10 µs a token. Here, numbers, strings and nested lists are read with one
match each, and every other value is left to xDSL the first time its text is seen.
"""

import re
from collections.abc import Callable

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

Dictionary = dict[str, Attribute]
ReadValue = Callable[[int], tuple[Attribute, int]]
"""Reads any attribute at a position; returns it and the position of the token behind it."""

_SPACE = r"[ \t\n]*"
_KEY = re.compile(rf'{_SPACE}([A-Za-z_][\w$.]*|"[\w$.]+"){_SPACE}(=?){_SPACE}', re.ASCII)
_SEPARATOR = re.compile(rf"{_SPACE}([,\]}}]){_SPACE}")
_STRING = re.compile(r'"([^"\\\n\v\f]*)"(?=[ \t\n]*[,\]}])')
_NUMBER = re.compile(
    r"(-?[0-9]+(\.[0-9]*(?:[eE][-+]?[0-9]+)?)?)(?: : (f64|f32|f16|i64|i32|i16|i8|i1|index))?"
    r"(?=[ \t\n]*[,\]}])"
)
_LITERAL = re.compile(r"[@#]?[A-Za-z_][\w$.]*(?:<[^<>(){}\[\]\n]*>)?(?=[ \t\n]*[,\]}])", re.ASCII)
_STRINGS = re.compile(r'\["[^"\\\n\v\f]*"(?:, "[^"\\\n\v\f]*")*\]')
_FLOATS = {None: f64, "f64": f64, "f32": f32, "f16": f16}
_INTEGERS = {
    None: i64,
    **{str(type): type for type in (i64, i32, i16, i8, i1)},
    "index": IndexType(),
}


class _Unreadable(Exception):
    """The text is not a dictionary, or one that only xDSL's parser can judge."""


class DictionaryReader:
    """Reads the attribute dictionaries of one text; equal texts become one attribute."""

    def __init__(self, text: str, read_value: ReadValue) -> None:
        self._text = text
        self._read_value = read_value
        self._known: dict[str, Attribute] = {}

    def read(self, position: int) -> tuple[Dictionary, int] | None:
        """Return the dictionary whose `{` is at `position`, and the position after its `}`.

        The result is None if there is no well-formed one: xDSL's parser then reports the error.
        """
        try:
            return self._dictionary(position)
        except Exception:
            # xDSL does not always raise a ParseError for a wrong value; parsing it again will.
            return None

    def _dictionary(self, position: int) -> tuple[Dictionary, int]:
        position += 1
        entries: Dictionary = {}
        while key := _KEY.match(self._text, position):
            name = key[1].strip('"')
            value, position = self._value(key.end()) if key[2] else (UnitAttr(), key.end())
            separator = _SEPARATOR.match(self._text, position)
            if separator is None or name in entries:
                raise _Unreadable
            entries[name] = value
            if separator[1] == "}":
                return entries, separator.start(1) + 1
            if separator[1] != ",":
                raise _Unreadable
            position = separator.end()
        raise _Unreadable

    def _value(self, position: int) -> tuple[Attribute, int]:
        text = self._text
        first = text[position : position + 1]
        if first == "{":
            entries, end = self._dictionary(position)
            return DictionaryAttr(entries), end
        if first == "[":
            return self._array(position)
        if match := _STRING.match(text, position):
            return StringAttr(match[1]), match.end()
        if match := _NUMBER.match(text, position):
            return _number(match), match.end()
        match = _LITERAL.match(text, position)
        if match is not None and (known := self._known.get(match[0])) is not None:
            return known, match.end()
        value, end = self._read_value(position)
        if match is not None and not text[match.end() : end].strip():
            self._known[match[0]] = value
        return value, end

    def _array(self, position: int) -> tuple[Attribute, int]:
        if strings := _STRINGS.match(self._text, position):
            array = self._known.get(strings[0])
            if array is None:
                names = re.findall(r'"([^"]*)"', strings[0])
                array = self._known[strings[0]] = ArrayAttr(StringAttr(name) for name in names)
            return array, strings.end()
        values: list[Attribute] = []
        position += 1
        while True:
            value, position = self._value(position)
            values.append(value)
            separator = _SEPARATOR.match(self._text, position)
            if separator is None or separator[1] == "}":
                raise _Unreadable
            if separator[1] == "]":
                return ArrayAttr(values), separator.start(1) + 1
            position = separator.end()


def _number(match: re.Match[str]) -> Attribute:
    number, fraction, type_name = match.groups()
    if fraction is not None:
        if type_name not in _FLOATS:
            raise _Unreadable
        return FloatAttr(float(number), _FLOATS[type_name])
    if type_name not in _INTEGERS:
        raise _Unreadable
    return IntegerAttr(int(number), _INTEGERS[type_name])
