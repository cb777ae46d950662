"""A parser for editors: it goes on after an error, and notes where everything stands.

After a syntax error it skips to the next op of the same block. Values that it would have
defined are known to be missing, so that their readers are not reported.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import AttributeInvT, Block, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from braid.frontends.mlir.op_ends import end_of_code, end_of_op, shown_range
from braid.frontends.mlir.parser import LocatingParser, UnregisteredOpError
from braid.frontends.mlir.recovering_lexer import RecoveringLexer
from braid.frontends.mlir.repeated_ops import Line
from braid.frontends.mlir.source_map import (
    MOST_FAULTS,
    Definition,
    ParsedOp,
    Scope,
    SourceMap,
    Stop,
    StoppedError,
    SyntaxFault,
    TextRange,
)
from braid.frontends.mlir.syntax_messages import message_of
from braid.support.errors import BraidError

_NAME = re.compile(r'"?[\w$.-]+"?')
_SSA_NAME = re.compile(r"%[\w$.-]+", re.ASCII)
_UNDEFINED = "values used but not defined"
"""The beginning of xDSL's message at the end of a text."""
_OP_BEGINS = {MLIRTokenKind.PERCENT_IDENT, MLIRTokenKind.BARE_IDENT, MLIRTokenKind.STRING_LIT}
_BLOCK_ENDS = {MLIRTokenKind.R_BRACE, MLIRTokenKind.CARET_IDENT, MLIRTokenKind.EOF}
_BETWEEN_OUTERMOST = {
    *(MLIRTokenKind.HASH_IDENT, MLIRTokenKind.EXCLAMATION_IDENT),
    *(MLIRTokenKind.FILE_METADATA_BEGIN, MLIRTokenKind.EOF),
}


_NOWHERE = TextRange(0, 0)


@dataclass
class _OpenOp:
    """An op that is being parsed: its results, and its name once that is reached."""

    results: list[Span] = field(default_factory=list[Span])
    name: TextRange = _NOWHERE


class RecoveringParser(LocatingParser):
    """A parser of whole texts that collects all errors that one parse can find, and all
    positions."""

    lexer_class = RecoveringLexer

    def __init__(
        self, context: Context, text: str, file: str, line_offset: int, stop: Stop
    ) -> None:
        """Begin at the start of `text`; see `LocatingParser`. `stop` is asked at each op."""
        super().__init__(context, text, file, line_offset)
        self.map = SourceMap(Scope(TextRange(0, len(text)), None))
        self.incomplete: set[Block | None] = set()
        """Blocks with skipped ops; None represents the outermost ops."""
        self._scope = self.map.whole
        self._missing: set[str] = set()  # names whose definitions are left out
        self._open: list[_OpenOp] = []  # outermost first
        self._open_blocks: list[Block | None] = [None]
        self._outermost: list[Operation] = []
        self._stop = stop

    def parse_recovering(self) -> ModuleOp:
        """Return the module of the parsable part; `map` has the rest.

        Raises:
            StoppedError: `stop` says so.

        """
        module: ModuleOp | None = None
        try:
            module = self.parse_module()
        except (ParseError, BraidError) as error:
            if not (isinstance(error, ParseError) and error.msg.startswith(_UNDEFINED)):
                self._note(error)
        self._note_undefined(self.forward_ssa_references)
        self._add_faults_of_lexer()
        return module or self._module_so_far()

    def _module_so_far(self) -> ModuleOp:
        """Return the module around the parsed ops, which may exist already."""
        first = self._outermost[0] if self._outermost else None
        if len(self._outermost) == 1 and isinstance(first, ModuleOp):
            return first
        around = first.parent_op() if first is not None else None
        return around if isinstance(around, ModuleOp) else ModuleOp(self._outermost)

    def parse_optional_operation(self) -> Operation | None:
        """Return the next op of the block that can be parsed."""
        is_outermost = self._scope is self.map.whole
        ends = _BETWEEN_OUTERMOST if is_outermost else _BLOCK_ENDS
        while True:
            if self._stop():
                raise StoppedError
            restore = self._checkpoint(self.pos)
            try:
                if self._current_token.kind in ends:
                    return None
                if self._current_token.kind not in _OP_BEGINS:
                    self.raise_error("expected an op")
                op = super().parse_optional_operation()
            except (ParseError, BraidError) as error:
                restore(error)
                continue
            if op is not None and is_outermost:
                self._outermost.append(op)
            return op

    def _checkpoint(self, start: int):
        """Return a parser of the text without the op at `start`, after an error in it."""
        stack, blocks = [*self._parser_state.dialect_stack], self.blocks
        labels, values = self.forward_block_references, self._scopes.enter()
        depth, block_depth, positions = (
            len(self._open),
            len(self._open_blocks),
            len(self._positions),
        )
        pending, scope = set(self.forward_ssa_references), self._scope

        def leave_out(error: ParseError | BraidError) -> None:
            content = self.lexer.input.content
            is_last = len(self.map.faults) >= MOST_FAULTS
            end = len(content) if is_last else end_of_op(content, start, scope is self.map.whole)
            self._note(error, start, end)
            self._parser_state.dialect_stack[:] = stack
            self.blocks, self.forward_block_references = blocks, labels
            self._scopes.leave(values)
            self._scope = scope
            for span in self._open[depth].results if len(self._open) > depth else ():
                self._missing.add(span.text)
                self._define(span.text, span)
            del self._open[depth:], self._open_blocks[block_depth:], self._positions[positions:]
            if scope is self.map.whole:
                self._note_undefined(self.forward_ssa_references.keys() - pending)
            self.incomplete.add(self._open_blocks[-1])
            self._resume_from(end)

        return leave_out

    def parse_operation(self) -> Operation:
        """Return an op, and note where it and its name stand."""
        start, pending = self.pos, set(self.forward_ssa_references)
        self._open.append(_OpenOp())
        op = super().parse_operation()
        name = self._open.pop().name
        if op.has_trait(IsolatedFromAbove):
            # Definitions in other functions are not visible here.
            self._note_undefined(self.forward_ssa_references.keys() - pending)
        self._note_op(op, start, name)
        return op

    def _note_op(self, op: Operation, start: int, name: TextRange) -> None:
        text = self.lexer.input.content[start : self.pos]
        end = start + len(text.rstrip())
        self.map.ops.append(ParsedOp(op, TextRange(start, end), name, self._scope))

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._open[-1].results = [span for span, _ in results]
        self._open[-1].name = _range_of(self._current_token.span)
        return results

    def _parse_block_body(self, block: Block) -> None:
        self._open_blocks.append(block)
        super()._parse_block_body(block)
        self._open_blocks.pop()

    def _parse_block(self) -> Block:
        if self._current_token.kind is MLIRTokenKind.CARET_IDENT:
            span = self._current_token.span
            self._define(span.text, span)
        return super()._parse_block()

    def _parse_alias_def(self) -> None:
        restore, span = self._checkpoint(self.pos), self._current_token.span
        try:
            super()._parse_alias_def()
        except RecursionError:
            raise
        except Exception as error:
            self._missing.add(span.text)
            restore(error if isinstance(error, ParseError) else BraidError(str(error)))
        self._define(span.text, span)

    def _append_repeated_op(self, block: Block, line: Line) -> bool:
        if self._stop():
            raise StoppedError
        if not super()._append_repeated_op(block, line):
            return False
        op = block.last_op
        assert op is not None, "it was appended"
        content = self.lexer.input.content
        start = content.rfind("\n", 0, line.name_start) + 1
        end = content.find("\n", line.name_start)
        matches = list(_SSA_NAME.finditer(content, start, line.name_start))
        first = 0
        for match, (name, size) in zip(matches, line.results, strict=True):
            span = Span(match.start(), match.start() + 1 + len(name), self.lexer.input)
            self._define(span.text, span, op.results[first : first + size])
            first += size
        start = matches[0].start() if matches else line.name_start
        called = _NAME.match(content, line.name_start)
        assert called is not None, "an op has a name"
        name = TextRange(line.name_start, called.end())
        self.map.ops.append(ParsedOp(op, TextRange(start, end), name, self._scope))
        return True

    def parse_optional_region(
        self, arguments: Iterable[Parser.Argument] | None = None
    ) -> Region | None:
        """Return a region, and note its scope."""
        if self._current_token.kind is not MLIRTokenKind.L_BRACE:
            return None
        start, outer = self.pos, self._scope
        self._scope = Scope(TextRange(start, start), outer)
        self.map.scopes.append(self._scope)
        try:
            return super().parse_optional_region(arguments)
        finally:
            content = self.lexer.input.content
            brace = content.rfind("}", start, self.pos) + 1
            is_closed = brace > 0 and not content[brace : self.pos].strip()
            self._scope.place = TextRange(start, brace if is_closed else self.pos)
            self._scope = outer

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        self._define(span.text, span, values)

    def _define(self, name: str, span: Span, values: Sequence[SSAValue] = ()) -> None:
        self.map.definitions.append(Definition(name, _range_of(span), self._scope, tuple(values)))

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        """Return the value; any that fits for one whose definition is left out."""
        name = operand.operand_name
        if name not in self.ssa_values and f"%{name}" in self._missing:
            return ForwardDeclaredValue(type)
        return super().resolve_operand(operand, type)

    def _report_undefined_values(self) -> None:
        """Do nothing: they are noted where each is used."""

    def _note_undefined(self, names: Iterable[str]) -> None:
        """Note the first use of each of these forward references, and forget them."""
        for name in sorted(names):
            del self.forward_ssa_references[name]
            if (span := self._first_uses.pop(name, None)) is not None:
                message = f"use of value '%{name}', which is not defined"
                self._add(SyntaxFault(_range_of(span), message))

    def _note(self, error: ParseError | BraidError, start: int = 0, end: int | None = None) -> None:
        """Note the error in the op from `start` to `end`.

        A missing token at its end is reported there; MLIR's parser backs up in the same way.
        """
        if isinstance(error, BraidError):
            self._add(SyntaxFault(self._range_at(self.pos, self.pos), error.message))
            return
        if error.span.text in self._missing:
            return  # its expected form was reported
        notes: list[tuple[TextRange, str]] = []
        if isinstance(error, MultipleSpansParseError):
            default = (error.ref_text or "see here").rstrip(":")
            for span, message in error.refs:
                notes.append((_range_of(span), message or default))
        place = self._range_at(error.span.start, error.span.end)
        if end is not None and start < end <= place.start:
            last = end_of_code(self.lexer.input.content, start, end)
            place = TextRange(last - 1, last)
        op = error.op if isinstance(error, UnregisteredOpError) else ""
        self._add(SyntaxFault(place, message_of(error), tuple(notes), op))

    def _range_at(self, start: int, end: int) -> TextRange:
        return TextRange(*shown_range(self.lexer.input.content, start, end))

    def _add(self, fault: SyntaxFault) -> None:
        if len(self.map.faults) < MOST_FAULTS:
            self.map.faults.append(fault)

    def _add_faults_of_lexer(self) -> None:
        """Add an invalid token, in place of the parser's message about the same lines."""
        lexer = self.lexer
        assert isinstance(lexer, RecoveringLexer)
        if not lexer.faults:
            return
        lines = {self._line_at(start) for start in lexer.faults}
        kept = [each for each in self.map.faults if self._line_at(each.place.start) not in lines]
        first = {self._line_at(start): fault for start, fault in reversed(lexer.faults.items())}
        self.map.faults = [*kept, *first.values()][:MOST_FAULTS]

    def _line_at(self, position: int) -> int:
        return self._location_at(position).line.data


def _range_of(span: Span[str] | Span[bytes]) -> TextRange:
    return TextRange(span.start, span.end)
