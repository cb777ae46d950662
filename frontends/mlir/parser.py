"""xDSL's parser, which locates every op in its file, and is fast on large files."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn, Self

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import (
    Attribute,
    AttributeInvT,
    Block,
    Operation,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import IRDLOperation, VerificationContext
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from braid.dialects.upstream_form import from_upstream_form, is_in_upstream_form, plain_name
from braid.frontends.collector import collector_paused
from braid.frontends.mlir.dictionaries import DictionaryReader
from braid.frontends.mlir.files import MLIRSyntaxError
from braid.frontends.mlir.location_parser import LocationParser
from braid.frontends.mlir.repeated_ops import Line, RepeatedOps
from braid.frontends.mlir.syntax_messages import message_of
from braid.support.errors import BraidError, Note, SourceLocation


class ScopedValues(dict[str, tuple[SSAValue, ...]]):
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
        """Return the table itself: leaving the region restores it."""
        return self

    def enter(self) -> int:
        """Begin a region; the result is for `leave`."""
        return len(self._defined)

    def leave(self, mark: int) -> None:
        """Forget definitions since `enter` returned `mark`."""
        while len(self._defined) > mark:
            del self[self._defined.pop()]


def require_complete(op_type: type[Operation]) -> None:
    """Raise BraidError for a class that leaves a method of its base class out."""
    missing = sorted(getattr(op_type, "__abstractmethods__", ()))
    if missing:
        names = ", ".join(f"'{name}'" for name in missing)
        raise BraidError(
            f"the class of op '{op_type.name}' has no {names}",
            hint=f"'{op_type.__module__}:{op_type.__qualname__}' has to define what its base "
            "class asks for",
        )


def wrong_attribute(op_type: type[Operation], given: Mapping[str, Attribute]) -> str | None:
    """Return the first of the `given` attributes that is not as the class says, None if all are."""
    if not issubclass(op_type, IRDLOperation):
        return None
    definition = op_type.get_irdl_definition()
    for name, declared in {**definition.attributes, **definition.properties}.items():
        try:
            if name in given:
                declared.constr.verify(given[name], VerificationContext())
        except VerifyException:
            return name
    return None


_BLANKS = re.compile(r"(?:\s+|//[^\n]*)*", re.ASCII)
_OP_NAME = re.compile(r'"?[A-Za-z_][\w.$]*"?')
_COMPUTED = "f16, bf16, f32, f64, i1, i8, i16, i32 or i64"
_TENSOR_TYPE = re.compile(r"tensor<[^<>/\n]*(?:<[^<>/\n]*>)?[^<>/\n]*>")


class UnregisteredOpError(ParseError):
    """Raised for an op, whose name is `op`, that no dialect of the context has."""

    def __init__(self, span: Span[str] | Span[bytes], message: str, op: str) -> None:
        super().__init__(span, message)
        self.op = op


_NO_OPS = "Could not parse entire input!"
"""The message of xDSL at the end of a text without ops."""

ExternalResources = dict[str, dict[str, str | bool]]


@dataclass(frozen=True)
class ParsedFile:
    """A module and the `external_resources` of its file, such as a reproducer's pipeline."""

    module: ModuleOp
    external_resources: ExternalResources
    is_implicit: bool = False
    """True if the text has no `builtin.module` around its ops."""


def parse_mlir(context: Context, text: str, file: str, *, line_offset: int = 0) -> ParsedFile:
    """Parse `text`, giving every op without a `loc(…)` its place in `file`.

    `line_offset` is the number of lines of the file before `text`. The result is not verified.
    The changes of `to_upstream_form` to braid's ops are undone.
    Raises `MLIRSyntaxError` with the location of the text that cannot be parsed.
    """
    with collector_paused():
        try:
            parser = LocatingParser(context, text, file, line_offset)
            module = parser.parse_module()
            if is_in_upstream_form(text):
                from_upstream_form(module)
            return ParsedFile(module, parser.external_resources, parser.is_implicit)
        except ParseError as error:
            raise _syntax_error(error, line_offset) from error


def _syntax_error(error: ParseError, line_offset: int) -> MLIRSyntaxError:
    notes: list[Note] = []
    if isinstance(error, MultipleSpansParseError):
        default = error.ref_text or "see here"
        for span, message in error.refs:
            notes.append(Note(message or default.rstrip(":"), _location(span, line_offset)))
    found = MLIRSyntaxError(
        message_of(error), location=_location(error.span, line_offset), notes=notes
    )
    found.op = error.op if isinstance(error, UnregisteredOpError) else ""
    return found


def _location(span: Span[str] | Span[bytes], line_offset: int) -> SourceLocation:
    location = span.get_location()
    return SourceLocation(location.file, location.line + line_offset, location.col)


class LocatingParser(LocationParser):
    """xDSL's parser, which keeps locations, collects external resources and never crashes."""

    def __init__(self, context: Context, text: str, file: str, line_offset: int) -> None:
        super().__init__(context, text, file, line_offset)
        self._scopes = ScopedValues()
        self.ssa_values = self._scopes
        self.external_resources: ExternalResources = {}
        self.is_implicit = False
        self._resource_keys: dict[tuple[str, str], str] = {}
        self._positions: list[int] = []  # Names of the ops being parsed, outermost first
        self._first_uses: dict[str, Span] = {}
        self._last_dictionary: dict[str, Attribute] = {}
        self._types: dict[str, TypeAttribute] = {}
        self._dictionaries = DictionaryReader(text, self._attribute_from)
        self._repeated = RepeatedOps(text, self._dictionaries)

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Return the module; whatever goes wrong is a `ParseError`."""
        try:
            module = super().parse_module(allow_implicit_module)
        except ParseError as error:
            if self._current_token.kind != MLIRTokenKind.EOF or error.msg != _NO_OPS:
                self._report_undefined_values()
                raise
            module = ModuleOp([])  # as upstream reads a text without ops
        except BraidError:
            raise
        except RecursionError:
            self.raise_error("the regions or attributes are nested too deeply to be parsed")
        except Exception as error:
            # xDSL lets errors that attributes and ops find in their parameters escape unchanged.
            self._raise_from(error)
        if isinstance(module.location, UnknownLoc):
            self.is_implicit = True  # written text has a location
            module.location = self._location_at(0)
        return module

    def _raise_from(self, error: Exception) -> NoReturn:
        self.raise_error(_detail(error))

    def _raise_of_op(self, position: int, error: Exception) -> NoReturn:
        """Name the op at `position`, and its attribute if that is wrong."""
        match = _OP_NAME.match(self.lexer.input.content, position)
        name = match[0].strip('"') if match is not None else ""
        stack = self._parser_state.dialect_stack
        op_type = self.ctx.get_optional_op(plain_name(name), dialect_stack=stack) if name else None
        if op_type is None:
            self._raise_from(error)
        attribute = wrong_attribute(op_type, self._last_dictionary)
        of_attribute = f"attribute '{attribute}': " if attribute is not None else ""
        message = f"'{name}' op {of_attribute}{_detail(error, plain_name(name))}"
        self.raise_error(message, position, position + len(name))

    def _report_undefined_values(self) -> None:
        """Name a value that is never defined at its first use instead of at the file's end."""
        if self._current_token.span.start < len(self.lexer.input):
            return
        for name in self.forward_ssa_references:
            if (span := self._first_uses.get(name)) is not None:
                self.raise_error(f"use of value '%{name}', which is not defined", span)

    def parse_operation(self) -> Operation:
        """Return an op, located at its name unless it has a location."""
        self._positions.append(0)
        self._last_dictionary = {}
        try:
            op = super().parse_operation()
        except (ParseError, BraidError, RecursionError):
            raise
        except Exception as error:
            # The errors that an op finds in its parts while it is created.
            self._raise_of_op(self._positions[-1], error)
        position = self._positions.pop()
        if isinstance(op.location, UnknownLoc):
            op.location = self._location_at(position)
        return op

    def _parse_block_body(self, block: Block) -> None:
        while True:
            line, following = self._read_repeated_ops(block)
            op = self.parse_optional_operation()
            if op is None:
                return
            block.add_op(op)
            if line is not None and self.pos == following:
                location = self._location_at(line.name_start)
                self._repeated.keep(line, op, self._values_of(line), location)

    def _read_repeated_ops(self, block: Block) -> tuple[Line | None, int]:
        """Read ops as long as they are known; return the line of the next one, and its end."""
        text, position = self.lexer.input.content, self.pos
        stack = self._parser_state.dialect_stack
        line, following = None, position
        while (end := text.find("\n", position)) >= 0:
            line, following = None, _skip_blanks(text, end)
            if self._repeated.is_end_of_op(following):
                line = self._repeated.line_at(position, end, stack)
            if line is None or not self._append_repeated_op(block, line):
                break
            position = following
        self._resume_from(position)
        return line, following

    def _append_repeated_op(self, block: Block, line: Line) -> bool:
        for name, _ in line.results:
            if name in self.ssa_values or name in self.forward_ssa_references:
                return False
        location = self._location_at(line.name_start)
        op = self._repeated.instantiate(line, self._values_of(line), location)
        if op is None:
            return False
        block.add_op(op)
        first = 0
        for name, size in line.results:
            values = tuple(op.results[first : first + size])
            self.ssa_values[name] = values
            if SSAValue.is_valid_name(name):
                for value in values:
                    value.name_hint = name
            first += size
        return True

    def _values_of(self, line: Line) -> list[SSAValue | None]:
        found: list[SSAValue | None] = []
        for operand in line.operands:
            name, _, index = operand[1:].partition("#")
            values = self.ssa_values.get(name, ())
            position = int(index or 0)
            found.append(values[position] if position < len(values) else None)
        return found

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        """Return a dictionary, read quickly where it is well formed."""
        start = self.pos
        if self._current_token.kind is MLIRTokenKind.L_BRACE:
            if (read := self._dictionaries.read(start)) is not None:
                self._resume_from(read[1])
                self._last_dictionary = read[0]
                return read[0]
            self._resume_from(start)
        self._last_dictionary = super().parse_optional_dictionary_attr_dict()
        return self._last_dictionary

    def _attribute_from(self, position: int) -> tuple[Attribute, int]:
        self._resume_from(position)
        return self.parse_attribute(), self.pos

    def parse_optional_type(self) -> TypeAttribute | None:
        """Parse a type; tensor types are parsed once for each way in which they are written."""
        start = self.pos
        match = _TENSOR_TYPE.match(self.lexer.input.content, start)
        if match is None:
            return super().parse_optional_type()
        if (known := self._types.get(match[0])) is not None:
            self._resume_from(match.end())
            return known
        parsed = super().parse_optional_type()
        if parsed is not None and self.pos == _skip_blanks(match.string, match.end()):
            self._types[match[0]] = parsed
        return parsed

    def parse_optional_region(
        self, arguments: Iterable[Parser.Argument] | None = None
    ) -> Region | None:
        """Return a region, whose values are forgotten at its end."""
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
        op_type = self.ctx.get_optional_op(plain_name(name), dialect_stack=stack)
        if op_type is None:
            position = self._positions[-1]
            try:
                self.raise_error(f"op '{name}' is not registered", position, position + len(name))
            except ParseError as error:
                raise UnregisteredOpError(error.span, error.msg, name) from error
        require_complete(op_type)
        return op_type

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        """Return the value, with the place of its first use kept for diagnostics."""
        name = operand.operand_name
        if name not in self.ssa_values and name not in self._first_uses:
            self._first_uses[name] = operand.span
        return super().resolve_operand(operand, type)

    def _parse_dialect_resource_handle(
        self, dialect_name: str, interface: OpAsmDialectInterface
    ) -> str:
        """Return the key of a resource in the process, which also has those of other modules.

        xDSL looks up renamed keys by their name in the text, and so treats each use as a different
        key.
        """
        named = dialect_name, self.parse_identifier(" for resource handle")
        if named not in self._resource_keys:
            self._resource_keys[named] = interface.declare_resource(named[1])
        return self._resource_keys[named]

    def _parse_external_resources(self) -> None:
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_resource_group)

    def _parse_resource_group(self) -> None:
        group = self.external_resources.setdefault(self.parse_identifier(), {})

        def parse_entry() -> None:
            key = self.parse_identifier()
            self.parse_punctuation(":")
            value = self.parse_optional_boolean()
            group[key] = self._parse_text() if value is None else value

        self.parse_punctuation(":")
        self.parse_comma_separated_list(self.Delimiter.BRACES, parse_entry)

    def _parse_text(self) -> str:
        """Return a string literal; xDSL takes those with other characters than ASCII for bytes."""
        encoded = self.parse_optional_bytes_literal()
        return self.parse_str_literal() if encoded is None else encoded.decode(errors="replace")


def _detail(error: Exception, name: str = "") -> str:
    """Return the text of an error; an assertion of xDSL has none."""
    if str(error):
        return str(error).splitlines()[0]
    if name.startswith("linalg.") and isinstance(error, AssertionError):
        return f"has elements of a type that it does not compute with, expected {_COMPUTED}"
    return "its operands, attributes and types do not fit together"


def _skip_blanks(text: str, position: int) -> int:
    """Return the position of the first token at or behind `position`."""
    match = _BLANKS.match(text, position)
    assert match is not None, "the pattern matches nothing too"
    return match.end()
