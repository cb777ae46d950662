"""A lexer that skips invalid tokens, and notes them."""

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRToken

from braid.frontends.mlir.location_parser import LinearLexer
from braid.frontends.mlir.source_map import MOST_FAULTS, SyntaxFault, TextRange
from braid.frontends.mlir.syntax_messages import message_of


class RecoveringLexer(LinearLexer):
    """A lexer that never raises `ParseError`; `faults` has the skipped text, by position."""

    def __init__(self, input: Input) -> None:
        """Begin at the start of `input`."""
        super().__init__(input)
        self.faults: dict[int, SyntaxFault] = {}

    def lex(self) -> MLIRToken:
        """Return the next token that is one."""
        while True:
            try:
                return super().lex()
            except ParseError as error:
                start = error.span.start
                end = max(error.span.end, start + 1)
                if self.input.at(start) == '"':  # text follows, not tokens
                    end = self.input.get_end_of_line(start)
                self.faults[start] = SyntaxFault(TextRange(start, end), message_of(error))
                self.pos = end if len(self.faults) < MOST_FAULTS else self.input.len
