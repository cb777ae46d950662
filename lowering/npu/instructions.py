"""From a block of ops in their order to the instruction stream of a chip."""

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.locations import source_location
from braid.analysis.simulator.instructions import Instruction, Kind, Stream
from braid.analysis.simulator.steps import is_addressing, steps_of
from braid.dialects.braid.names import names_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp
from braid.errors import UnsupportedError
from braid.passes.order.order_attribute import ordered_ops
from braid.targets.target import Backend


def lower_to_instructions(block: Block, backend: Backend) -> Stream:
    """The stream that runs the ops of `block` on `backend` in the order in which they stand.

    Raises UnsupportedError for control flow and open dims.
    """
    lowering = _Lowering(backend)
    for op in ordered_ops(block):
        lowering.visit(op)
    return Stream(tuple(lowering.instructions), tuple(lowering.ops))


class _Lowering:
    """The stream so far; `last` is the last instruction of each op that has any."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.instructions: list[Instruction] = []
        self.ops: list[str] = []
        self.last: dict[Operation, int] = {}

    def visit(self, op: Operation) -> None:
        if op.regions and not isinstance(op, GroupOp):
            raise UnsupportedError(
                f"'{op.name}' cannot be lowered to instructions: a stream has no control flow",
                location=source_location(op),
                hint="lower each branch or loop body as a function of its own",
            )
        steps = steps_of(op, self.backend)
        needed = sorted({last for value in op.operands for last in self._made_by(value)})
        if not steps:
            return
        self.ops.append(describe(op, len(self.ops)))
        previous: int | None = None
        for step in steps:
            if previous is not None:
                self._wait(step.unit, previous)
            if step.waits:
                for token in needed:
                    self._wait(step.unit, token)
                needed = []
            kind = Kind[self.backend.units[step.unit].resource.upper()]
            previous = self._emit(kind, step.unit, step.amount)
        for token in needed:  # nothing of this op waits, but its readers must
            previous = self._emit(Kind.SYNC, steps[-1].unit, token)
        assert previous is not None
        self.last[op] = previous

    def _made_by(self, value: SSAValue) -> Sequence[int]:
        """The instructions after which `value` is there, seen through addressing."""
        owner = value.owner
        if isinstance(owner, Block):
            return ()
        if owner in self.last:
            return (self.last[owner],)
        if not is_addressing(owner):
            return ()
        return [last for operand in owner.operands for last in self._made_by(operand)]

    def _wait(self, unit: int, token: int) -> None:
        """A unit executes in order, so it never waits for itself."""
        if self.instructions[token].unit != unit:
            self._emit(Kind.SYNC, unit, token)

    def _emit(self, kind: Kind, unit: int, amount: int) -> int:
        self.instructions.append(Instruction(kind, unit, amount, len(self.ops) - 1))
        return len(self.instructions) - 1


def describe(op: Operation, number: int) -> str:
    """A name for reports: that of the model's layer, or the op's own and a number."""
    if names := names_of(op):
        return "+".join(names)
    kind = op.kind.data if isinstance(op, OpaqueOp) else op.name.removeprefix("braid.")
    return f"{kind}#{number}"
