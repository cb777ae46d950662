"""Reading `.mlir` text: xDSL's parser, with the source location of every op kept."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import AttributeInvT, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Span

from braid.dialects.float_literals import BitPatternParser
from braid.errors import BraidError, Note, SourceLocation
from braid.frontends.collector import collector_paused

_BYTECODE_MAGIC = b"ML\xefR"

ExternalResources = dict[str, dict[str, str | bool]]


class MLIRSyntaxError(BraidError):
    """The text is not MLIR, or uses an op, attribute or type that no loaded dialect has."""


@dataclass(frozen=True)
class ParsedFile:
    """A module and the `external_resources` of its file, such as a reproducer's pipeline."""

    module: ModuleOp
    external_resources: ExternalResources


def read_mlir_text(path: Path) -> str:
    """The text of the MLIR file at `path`. Raises `BraidError` where it cannot be read."""
    try:
        return decode_mlir(path.read_bytes(), str(path))
    except OSError as error:
        raise BraidError(f"cannot read '{path}': {error.strerror}") from error


def decode_mlir(data: bytes, file: str) -> str:
    """`data` as MLIR text. Raises `MLIRSyntaxError` for bytecode and what is not UTF-8."""
    location = SourceLocation(file)
    if data.startswith(_BYTECODE_MAGIC):
        raise MLIRSyntaxError(
            "expected MLIR text, but this is MLIR bytecode",
            location=location,
            hint="convert it with 'mlir-opt FILE -o FILE.mlir'",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MLIRSyntaxError(
            f"expected MLIR text, but byte {error.start} is not UTF-8", location=location
        ) from error


def parse_mlir(context: Context, text: str, file: str, *, line_offset: int = 0) -> ParsedFile:
    """Parse `text`, giving every op without a `loc(…)` its place in `file`.

    `line_offset` is the number of lines of the file before `text`. The result is not verified.
    Raises `MLIRSyntaxError` with the location of what cannot be parsed.
    """
    with collector_paused():
        try:
            parser = _LocatingParser(context, text, file, line_offset)
            return ParsedFile(parser.parse_module(), parser.external_resources)
        except ParseError as error:
            raise _syntax_error(error, line_offset) from error


def _syntax_error(error: ParseError, line_offset: int) -> MLIRSyntaxError:
    notes: list[Note] = []
    if isinstance(error, MultipleSpansParseError):
        default = error.ref_text or "see here"
        for span, message in error.refs:
            notes.append(Note(message or default.rstrip(":"), _location(span, line_offset)))
    return MLIRSyntaxError(error.msg, location=_location(error.span, line_offset), notes=notes)


def _location(span: Span[str] | Span[bytes], line_offset: int) -> SourceLocation:
    location = span.get_location()
    return SourceLocation(location.file, location.line + line_offset, location.col)


class _ScopedValues(dict[str, tuple[SSAValue, ...]]):
    """The values by name that are visible; those of a region are taken out when it ends.

    xDSL copies the whole table at the beginning of every region, which makes parsing quadratic.
    """

    def __init__(self) -> None:
        super().__init__()
        self._defined: list[str] = []

    def __setitem__(self, name: str, values: tuple[SSAValue, ...]) -> None:
        self._defined.append(name)
        super().__setitem__(name, values)

    def copy(self) -> Self:
        return self

    def enter(self) -> int:
        return len(self._defined)

    def leave(self, mark: int) -> None:
        while len(self._defined) > mark:
            del self[self._defined.pop()]


class _LocatingParser(BitPatternParser):
    """xDSL's parser, which keeps locations, collects external resources and never crashes."""

    def __init__(self, context: Context, text: str, file: str, line_offset: int) -> None:
        super().__init__(context, text, file)
        self._scopes = _ScopedValues()
        self.ssa_values = self._scopes
        self.external_resources: ExternalResources = {}
        self._file = StringAttr(file)
        self._line_offset = line_offset
        self._line_starts = _line_starts(text)
        self._positions: list[int] = []  # of the names of the ops being parsed, outermost first
        self._first_uses: dict[str, Span] = {}

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        try:
            module = super().parse_module(allow_implicit_module)
        except ParseError:
            self._report_undefined_values()
            raise
        except RecursionError:
            self.raise_error("the regions or attributes are nested too deeply to be parsed")
        except Exception as error:
            # xDSL lets what attributes and ops find wrong with their parameters escape as is.
            self._raise_from(error)
        if isinstance(module.location, UnknownLoc):
            module.location = self._attribute_at(0)
        return module

    def _raise_from(self, error: Exception) -> NoReturn:
        detail = str(error) or type(error).__name__
        self.raise_error(detail.splitlines()[0])

    def _report_undefined_values(self) -> None:
        """Name a value that is never defined at its first use instead of at the file's end."""
        if self._current_token.span.start < len(self.lexer.input):
            return
        for name in self.forward_ssa_references:
            if (span := self._first_uses.get(name)) is not None:
                self.raise_error(f"use of value '%{name}', which is not defined", span)

    def parse_operation(self) -> Operation:
        self._positions.append(0)
        op = super().parse_operation()
        position = self._positions.pop()
        if isinstance(op.location, UnknownLoc):
            op.location = self._attribute_at(position)
        return op

    def parse_optional_region(
        self, arguments: Iterable[Parser.Argument] | None = None
    ) -> Region | None:
        mark = self._scopes.enter()
        region = super().parse_optional_region(arguments)
        self._scopes.leave(mark)
        return region

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._positions[-1] = self._current_token.span.start
        return results

    def _get_op_by_name(self, name: str) -> type[Operation]:
        stack = self._parser_state.dialect_stack
        op_type = self.ctx.get_optional_op(name, dialect_stack=stack)
        if op_type is None:
            position = self._positions[-1]
            self.raise_error(f"op '{name}' is not registered", position, position + len(name))
        return op_type

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        name = operand.operand_name
        if name not in self.ssa_values and name not in self._first_uses:
            self._first_uses[name] = operand.span
        return super().resolve_operand(operand, type)

    def _attribute_at(self, position: int) -> FileLineColLoc:
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return FileLineColLoc(self._file, IntAttr(line + self._line_offset), IntAttr(column))

    def _parse_external_resources(self) -> None:
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_resource_group)

    def _parse_resource_group(self) -> None:
        group = self.external_resources.setdefault(self.parse_identifier(), {})

        def parse_entry() -> None:
            key = self.parse_identifier()
            self.parse_punctuation(":")
            value = self.parse_optional_boolean()
            group[key] = self.parse_str_literal() if value is None else value

        self.parse_punctuation(":")
        self.parse_comma_separated_list(self.Delimiter.BRACES, parse_entry)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    position = text.find("\n")
    while position != -1:
        starts.append(position + 1)
        position = text.find("\n", position + 1)
    return starts
