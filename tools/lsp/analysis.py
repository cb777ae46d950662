"""The analysis of one version of a text: the map of each of its parts, and the errors."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from lsprotocol.types import PositionEncodingKind
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.parser.core import ForwardDeclaredValue

from braid.analysis.structure.verification import (
    InvalidIRError,
    invalid_ops,
    undominated_uses,
)
from braid.frontends.collector import collector_paused
from braid.frontends.mlir.files import check_aliases, check_nesting
from braid.frontends.mlir.recovering_parser import RecoveringParser
from braid.frontends.mlir.source_map import (
    MOST_FAULTS,
    ParsedOp,
    SourceMap,
    Stop,
    StoppedError,
    SyntaxFault,
    TextRange,
)
from braid.support.errors import BraidError, Note, SourceLocation, did_you_mean
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of
from braid.tools.lsp.names import Names
from braid.tools.lsp.positions import TextPositions
from braid.tools.opt.files import split_chunks

_UNREGISTERED = re.compile(r"^[ \t]*//.*-allow-unregistered-dialect\b", re.MULTILINE)


@dataclass(frozen=True)
class Problem:
    """An error at `place`, which counts from the beginning of the whole text."""

    place: TextRange
    message: str
    hint: str | None = None
    notes: tuple[tuple[TextRange, str], ...] = ()
    severity: Literal["error", "warning"] = "error"


@dataclass(frozen=True)
class Part:
    """A part of a text that stands alone, between lines `// -----`; it begins at `start`.

    A valid text has no errors.
    """

    start: int
    text: str
    module: ModuleOp
    map: SourceMap
    is_valid: bool = False

    @cached_property
    def names(self) -> Names:
        """Where names are defined and used."""
        return Names(self.text, self.map)

    @cached_property
    def by_op(self) -> dict[Operation, ParsedOp]:
        """The places of ops."""
        return {parsed.op: parsed for parsed in self.map.ops}

    @cached_property
    def costs(self) -> CostSource:
        """The costs on the module's target."""
        return CostSource(target_of(self.module))

    def op_named_at(self, position: int) -> ParsedOp | None:
        """Return the op whose name is at `position` of the part."""
        return next((each for each in self.map.ops if each.name.holds(position)), None)

    def op_around(self, position: int) -> ParsedOp | None:
        """Return the innermost op whose text has `position` of the part."""
        around = (each for each in self.map.ops if each.place.holds(position))
        return max(around, key=lambda each: each.place.start, default=None)


@dataclass(frozen=True)
class Analysis:
    """One version of a text, its parts in order, and all errors in it."""

    text: str
    positions: TextPositions
    parts: tuple[Part, ...]
    problems: tuple[Problem, ...]

    def part_at(self, position: int) -> Part | None:
        """Return the part that `position` of the text is in."""
        within = (each for each in self.parts if each.start <= position)
        return max(within, key=lambda each: each.start, default=None)


def plain_text(text: str) -> str:
    """Return `text` with its lines ended by `\\n`, each as long as before."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def analyze(
    text: str,
    file: str,
    make_context: Callable[[bool], Context],
    encoding: PositionEncodingKind | str = PositionEncodingKind.Utf16,
    stop: Stop = lambda: False,
) -> Analysis:
    """Return all that one parse and the verifier find in `text`, which may be anything.

    `make_context` takes whether ops that no dialect has are allowed, which they are where a comment
    of the text runs `braid-opt` so.

    Raises:
        StoppedError: `stop` says so.

    """
    text = plain_text(text)
    positions = TextPositions(text, encoding)
    try:
        check_nesting(text, file)
        check_aliases(text, file)
    except BraidError as error:
        return Analysis(text, positions, (), (_problem_of(error, positions),))
    context = make_context(_UNREGISTERED.search(text) is not None)
    parts: list[Part] = []
    problems: list[Problem] = []
    for chunk in split_chunks(text):
        start = positions.line_start(chunk.line_offset)
        with collector_paused():
            parser = RecoveringParser(context, chunk.text, file, chunk.line_offset, stop)
            part = Part(start, chunk.text, parser.parse_recovering(), parser.map)
        found = [_problem_of_fault(fault, start, context) for fault in part.map.faults]
        found += _Verification(parser, part, positions, stop).problems()
        parts.append(replace(part, is_valid=not found))
        problems += found
    return Analysis(text, positions, tuple(parts), tuple(problems))


def _problem_of_fault(fault: SyntaxFault, start: int, context: Context) -> Problem:
    hint = _hint_for_op(fault.op, context) if fault.op else None
    notes = tuple((_moved(place, start), message) for place, message in fault.notes)
    return Problem(_moved(fault.place, start), fault.message, hint, notes)


def _hint_for_op(name: str, context: Context) -> str | None:
    """Return the op of a loaded dialect that is most like one that is not registered."""
    return did_you_mean(name, (each.name for each in context.loaded_ops))


def _problem_of(error: BraidError, positions: TextPositions) -> Problem:
    place = _place_of(error.location, positions)
    return Problem(place or TextRange(0, 0), error.message, error.hint)


def _place_of(location: SourceLocation | None, positions: TextPositions) -> TextRange | None:
    if location is None or not location.line:
        return None
    start = positions.line_start(location.line - 1) + max(location.column - 1, 0)
    return TextRange(start, start + 1)


def _moved(place: TextRange, by: int) -> TextRange:
    return TextRange(place.start + by, place.end + by)


@dataclass
class _Verification:
    """The verifier on one part, in which ops may be missing."""

    parser: RecoveringParser
    part: Part
    positions: TextPositions
    stop: Stop

    def problems(self) -> Iterator[Problem]:
        """Yield errors of complete ops."""
        found = False
        for op, error in invalid_ops(self.part.module, self._is_incomplete):
            yield self._problem(op, error)
            found = True
        if found or self.part.map.faults:
            return
        for count, (op, error) in enumerate(undominated_uses(self.part.module)):
            if count < MOST_FAULTS:
                yield self._problem(op, error)

    def _is_incomplete(self, op: Operation) -> bool:
        """Return whether the verifier's message about `op` may follow from missing ops."""
        if self.stop():
            raise StoppedError
        incomplete = self.parser.incomplete
        if any(isinstance(operand, ForwardDeclaredValue) for operand in op.operands):
            return True
        if any(block in incomplete for region in op.regions for block in region.blocks):
            return True
        if op.next_op is None and op.parent in incomplete:
            return True  # the terminator may be missing
        if None not in incomplete:
            return False
        values = (*op.properties.values(), *op.attributes.values())
        return any(isinstance(value, SymbolRefAttr) for value in values)

    def _problem(self, op: Operation, error: InvalidIRError) -> Problem:
        parsed = self.part.by_op.get(op)
        place = _moved(parsed.name, self.part.start) if parsed is not None else None
        if place is None:
            place = _place_of(error.location, self.positions)
        notes = tuple(self._notes(error.notes))
        return Problem(place or TextRange(0, 0), error.message, error.hint, notes)

    def _notes(self, notes: tuple[Note, ...]) -> Iterator[tuple[TextRange, str]]:
        for note in notes:
            if (place := _place_of(note.location, self.positions)) is not None:
                yield place, note.message
