"""Reading ops that look like one that was read before, without parsing them again.

Large graphs are made of few kinds of lines. A line with the names of its values and the contents of
its attribute dictionaries taken out is its *form*. The ops that xDSL's parser made of the first
line of a form are kept; for later lines only the operands are looked up and the dictionaries read.
Ops with regions or successors, and ops on several lines, always go through xDSL's parser, and so
does every line that the kept op does not fit: that parser alone reports errors.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from braid.frontends.mlir.dictionaries import Dictionary, DictionaryReader

_ID = r"%(?:[0-9]+|[a-zA-Z$._-][\w$.-]*)"
_RESULT = rf"{_ID}(?::[0-9]+)?"
_RESULTS = re.compile(rf"({_RESULT}(?:, {_RESULT})*) = ", re.ASCII)
_OPERAND = re.compile(rf"{_ID}(?:#[0-9]+)?", re.ASCII)
_LOCATION = re.compile(r' loc\("([^"\\]*)":([0-9]+):([0-9]+)\)$')
_NEXT_OP = re.compile(
    rf'[}}^]|{_RESULT}(?:, {_RESULT})* = |[A-Za-z_][\w$]*\.[\w$.]+|"[^"\n]+"\s*\(', re.ASCII
)
"""The text that cannot go on with the op of the line before: the end of its block, or an op."""

_Form = tuple[str | tuple[str, ...], ...]


class Line(NamedTuple):
    """An op on one line: its form, and the parts that the form leaves out."""

    name_start: int
    results: list[tuple[str, int]]  # name without `%`, number of values
    form: _Form
    operands: list[str]
    dictionaries: list[Dictionary]
    location: LocationAttr | None


@dataclass(frozen=True)
class _Template:
    """The op that the first line of a form became."""

    op_type: type[Operation]
    operand_types: tuple[Attribute, ...]
    result_types: tuple[Attribute, ...]
    order: tuple[int, ...]  # for each operand of the op, which in the text it is
    attributes: dict[str, Attribute | None]  # None: from a dictionary of the line
    properties: dict[str, Attribute | None]
    location: LocationAttr | None


class RepeatedOps:
    """The forms seen so far in one text."""

    def __init__(self, text: str, dictionaries: DictionaryReader) -> None:
        self._text = text
        self._dictionaries = dictionaries
        self._templates: dict[_Form, _Template | None] = {}

    def line_at(self, start: int, end: int, stack: Sequence[str]) -> Line | None:
        """Return the op whose text is `start` to `end`, None for one that is never kept.

        `stack` holds the dialects whose names may be left out there.
        """
        text = self._text
        if text.endswith(("{", "}", ",", "("), start, end) or text.find("//", start, end) >= 0:
            return None
        if text.find(" ", start, end) < 0:
            return None  # A mere name may go on with operands in the next line.
        match = _RESULTS.match(text, start, end)
        name_start = match.end() if match else start
        location = _LOCATION.search(text, max(name_start, end - 300), end)
        body_end = location.start() if location else end
        parts = self._parts(name_start, body_end)
        if parts is None:
            return None
        pieces, dictionaries = parts
        operands = _OPERAND.findall(" ".join(pieces))
        form: list[str | tuple[str, ...]] = [*stack, "located" if location else ""]
        for piece, dictionary in zip(pieces, [*dictionaries, None], strict=True):
            form.append(_OPERAND.sub("%", piece))
            if dictionary is not None:
                form.append(tuple(dictionary))
        return Line(
            name_start,
            [_result(name) for name in match[1].split(", ")] if match else [],
            tuple(form),
            operands,
            dictionaries,
            location and _file_location(location[1], int(location[2]), int(location[3])),
        )

    def _parts(self, start: int, end: int) -> tuple[list[str], list[Dictionary]] | None:
        """Return the text around the attribute dictionaries, and the dictionaries."""
        text = self._text
        pieces: list[str] = []
        dictionaries: list[Dictionary] = []
        while (brace := text.find("{", start, end)) >= 0:
            if not _is_balanced("".join([*pieces, text[start:brace]]).replace("<>", "")):
                break
            read = self._dictionaries.read(brace)
            if read is None or read[1] > end:
                return None
            pieces.append(text[start:brace])
            dictionaries.append(read[0])
            start = read[1]
        pieces.append(text[start:end])
        return pieces, dictionaries

    def is_end_of_op(self, position: int) -> bool:
        """Return whether the text at `position` cannot belong to the op before."""
        return _NEXT_OP.match(self._text, position) is not None

    def keep(
        self,
        line: Line,
        op: Operation,
        values: Sequence[SSAValue | None],
        position: LocationAttr,
    ) -> None:
        """Remember that `line`, at `position`, was parsed as `op`.

        `values` are those of `line.operands`.
        """
        if self._templates.get(line.form) is None:  # the first may have one value twice
            says_where = not line.location and op.location != position
            location = op.location if says_where else None
            self._templates[line.form] = _template(line, op, values, location)

    def instantiate(
        self, line: Line, values: Sequence[SSAValue | None], location: LocationAttr
    ) -> Operation | None:
        """Return the op of `line`, None where nothing fitting is known.

        `location` is the location of ops without one.
        """
        template = self._templates.get(line.form)
        if template is None or not _binds(line.results, len(template.result_types)):
            return None
        if len(values) != len(template.order):
            return None
        operands = [values[index] for index in template.order]
        for value, expected in zip(operands, template.operand_types, strict=True):
            if value is None or (value.type is not expected and value.type != expected):
                return None
        given: Dictionary = {}
        for dictionary in line.dictionaries:
            given |= dictionary
        return template.op_type.create(
            operands=operands,  # pyright: ignore[reportArgumentType]
            result_types=template.result_types,
            attributes=_filled(template.attributes, given),
            properties=_filled(template.properties, given),
            location=line.location or template.location or location,
        )


def _is_balanced(text: str) -> bool:
    """Return whether a `{` behind `text` begins properties, or is outside brackets and strings."""
    angles = text.count("<") - text.count(">") + text.count("->") - text.endswith("<")
    return (
        angles == 0
        and text.count("(") == text.count(")")
        and text.count("[") == text.count("]")
        and text.count('"') % 2 == 0
        and "\\" not in text
    )


def _template(
    line: Line, op: Operation, values: Sequence[SSAValue | None], location: LocationAttr | None
) -> _Template | None:
    """Return the reusable part of `op`: The result is None unless text and ops correspond one to
    one."""
    positions = {value: index for index, value in enumerate(values)}
    if (
        op.regions
        or op.successors
        or len(positions) != len(values)
        or len(values) != len(op.operands)
        or any(operand not in positions for operand in op.operands)
    ):
        return None
    keys = [key for dictionary in line.dictionaries for key in dictionary]
    if len(set(keys)) != len(keys):
        return None
    attributes: dict[str, Attribute | None] = {**op.attributes}
    properties: dict[str, Attribute | None] = {**op.properties}
    for dictionary in line.dictionaries:
        for key, value in dictionary.items():
            # A dictionary may set attributes and properties; an op may also do as it likes.
            places = [d for d in (attributes, properties) if d.get(key) == value]
            if len(places) != 1:
                return None
            places[0][key] = None
    return _Template(
        type(op),
        tuple(operand.type for operand in op.operands),
        tuple(result.type for result in op.results),
        tuple(positions[operand] for operand in op.operands),
        attributes,
        properties,
        location,
    )


def _result(text: str) -> tuple[str, int]:
    name, _, size = text[1:].partition(":")
    return name, int(size or 1)


def _binds(results: list[tuple[str, int]], count: int) -> bool:
    """Return whether an op with `count` results may have these names for them."""
    return not results or sum(size for _, size in results) == count


def _filled(kept: Mapping[str, Attribute | None], given: Dictionary) -> Dictionary:
    return {key: given[key] if value is None else value for key, value in kept.items()}


def _file_location(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
