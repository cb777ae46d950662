"""From a block of ops in their order to the instruction stream of a chip."""

from xdsl.ir import Block, Operation

from braid.analysis.locations import source_location
from braid.analysis.simulator.instructions import Buffer, Instruction, Kind, Stream
from braid.analysis.simulator.steps import steps_of
from braid.dialects.braid.names import names_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp
from braid.errors import UnsupportedError
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.latency_problem import ChipProblem, chip_problem
from braid.targets.target import Backend

Token = tuple[int, ...]
"""For every unit the last instruction that must have ended, -1 for none."""


def lower_to_instructions(block: Block, backend: Backend) -> Stream:
    """The stream that runs the ops of `block` on `backend` in the order in which they stand.

    What is read several times stays on the chip while there is room; loads, stores and spills are
    put in where they are necessary. Raises UnsupportedError for control flow and open dims, and
    InfeasibleError for an op whose operands and results do not fit the chip.
    """
    graph = BlockGraph.of(block)
    for op in graph.ops:
        if op.regions and not isinstance(op, GroupOp):
            raise UnsupportedError(
                f"'{op.name}' cannot be lowered to instructions: a stream has no control flow",
                location=source_location(op),
                hint="lower each branch or loop body as a function of its own",
            )
    chip = chip_problem(graph, backend, {})
    sink = _StreamSink(graph, chip, backend)
    chip.issue(sink)
    return Stream(tuple(sink.instructions), tuple(sink.ops), tuple(sink.buffers))


class _StreamSink:
    """Writes instructions as an order is issued."""

    def __init__(self, graph: BlockGraph, chip: ChipProblem, backend: Backend) -> None:
        self.graph = graph
        self.chip = chip
        self.backend = backend
        self.instructions: list[Instruction] = []
        self.ops: list[str] = []
        self.buffers: list[Buffer] = []
        units = range(len(backend.units))
        self.start: Token = tuple(-1 for _ in units)
        self.waited = [list(self.start) for _ in units]
        self.filled: dict[int, int] = {}
        self.named: int | None = None
        self.current = 0

    def begin(self, op: int) -> None:
        """What follows belongs to `op`."""
        self.current = op

    def join(self, first: Token, second: Token) -> Token:
        """When both have ended."""
        return first if first == second else tuple(map(max, first, second))

    def load(self, value: int, after: Token) -> Token:
        """Loads a value."""
        assert self.chip.transfers is not None
        token = self._emit(self.chip.transfers.load, self.chip.sizes[value], after)
        self.filled[value] = len(self.instructions) - 1
        return token

    def store(self, value: int, after: Token) -> Token:
        """Stores a value."""
        assert self.chip.transfers is not None
        return self._emit(self.chip.transfers.store, self.chip.sizes[value], after)

    def compute(self, op: int, after: Token) -> Token:
        """The steps of `op` one after the other; what follows waits for the last of them."""
        for number, step in enumerate(steps_of(self.graph.ops[op], self.backend)):
            after = self._emit(step.unit, step.amount, after)
            if number == 0:
                first = len(self.instructions) - 1
                self.filled |= dict.fromkeys(self.chip.made_by(op), first)
        return after

    def release(self, value: int, after: Token) -> None:
        """Notes from which instruction until which the buffer of a value is taken."""
        last = tuple(place for place in after if place >= 0)
        self.buffers.append(Buffer(self.chip.sizes[value], self.filled[value], last))

    def _emit(self, unit: int, amount: int, after: Token) -> Token:
        """One instruction for `unit`, behind the waits that are not implied by earlier ones."""
        if self.named != self.current:
            self.ops.append(describe(self.graph.ops[self.current], len(self.ops)))
            self.named = self.current
        for other, place in enumerate(after):
            if other != unit and place > self.waited[unit][other]:
                self.waited[unit][other] = place
                self._append(Kind.SYNC, unit, place)
        self._append(Kind.named(self.backend.units[unit].resource), unit, amount)
        place = len(self.instructions) - 1
        return tuple(place if other == unit else -1 for other in range(len(self.start)))

    def _append(self, kind: Kind, unit: int, amount: int) -> None:
        self.instructions.append(Instruction(kind, unit, amount, len(self.ops) - 1))


def describe(op: Operation, number: int) -> str:
    """A name for reports: that of the model's layer, or the op's own and a number."""
    if names := names_of(op):
        return "+".join(names)
    kind = op.kind.data if isinstance(op, OpaqueOp) else op.name.removeprefix("braid.")
    return f"{kind}#{number}"
