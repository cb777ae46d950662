"""Inter-op streams: lists of kernels that run concurrently, and the order that holds between them.

A function of several streams (`braid.inter_op_streams`) runs the ops of its body in their order,
but a call that has a stream (`braid.inter_op_stream`) waits only for the calls of its stream that
stand before it and for those that make its operands. All other ops that run, such as control flow,
run alone: all ops before it have ended when it starts, and no op after it has started.

The operations known to be done are a vector clock (F. Mattern, "Virtual time and global states of
distributed systems", 1988): for each stream, how many of its calls.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.strided_storage import is_only_storage
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import INTER_OP_STREAM, INTER_OP_STREAMS
from braid.support.errors import BraidError

Clock = tuple[int, ...]
"""The number of finished calls of each stream, and last that of finished ops that run alone."""


@dataclass(frozen=True)
class InterOpStep:
    """An op that runs: the `number`-th of `stream`, counted from 1, or of all streams for None.

    `clock` has the operations that are done when it begins. Before it begins it waits until each
    stream of `waits` has done this many calls; all else is done by then.
    """

    stream: int | None
    number: int
    clock: Clock
    waits: tuple[tuple[int, int], ...] = ()


def inter_op_stream_count(function: FuncOp) -> int:
    """Return the number of streams of `function`, by default 1.

    Raises BraidError for fewer than 1.
    """
    count = _integer(function, INTER_OP_STREAMS)
    if count is not None and count < 1:
        raise BraidError(
            f"{INTER_OP_STREAMS} is {count}, expected at least 1",
            location=source_location(function),
        )
    return 1 if count is None else count


def inter_op_stream_of(op: Operation) -> int | None:
    """Return the stream that `op` says; None for a kernel that runs alone."""
    return _integer(op, INTER_OP_STREAM)


def set_inter_op_stream(op: Operation, stream: int | None) -> None:
    """Write which stream runs `op`; None for a kernel that runs alone."""
    op.attributes.pop(INTER_OP_STREAM, None)
    if stream is not None:
        op.attributes[INTER_OP_STREAM] = IntegerAttr(stream, i64)


class InterOpOrder:
    """The partial order in which the ops of a function run; total where it has one stream.

    `steps` has the ops of `block`, its body, that run, in their order. Raises BraidError for a
    stream that the function does not have.
    """

    def __init__(self, function: FuncOp) -> None:
        self.streams = inter_op_stream_count(function)
        self.steps: dict[Operation, InterOpStep] = {}
        self._known = [[0] * (self.streams + 1) for _ in range(self.streams)]
        self.block = function.body.block
        for op in self.block.ops:
            if _runs(op):
                stream = self._stream_of(op)
                self.steps[op] = self._alone() if stream is None else self._on_stream(op, stream)

    def before(self, first: Operation, second: Operation) -> bool:
        """Return whether `first`, an op of the function, always ends before `second` begins.

        An op nested in an op of the body counts as that op of the body.
        """
        one, other = self.steps[self.in_body(first)], self.steps[self.in_body(second)]
        return other.clock[self.column(one)] >= one.number

    def column(self, step: InterOpStep) -> int:
        """Return the place in clocks of the steps that `step` is one of."""
        return self.streams if step.stream is None else step.stream

    def in_body(self, op: Operation) -> Operation:
        """Return the op of the function's body that is or holds `op`."""
        while op.parent is not self.block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        return op

    def awaited(self) -> set[tuple[int, int]]:
        """Return the calls that others wait for: (stream, number)."""
        return {wait for step in self.steps.values() for wait in step.waits}

    def _stream_of(self, op: Operation) -> int | None:
        stream = inter_op_stream_of(op) if isinstance(op, CallOp) and self.streams > 1 else None
        if stream is not None and not 0 <= stream < self.streams:
            raise BraidError(
                f"{INTER_OP_STREAM} is {stream}, expected one of the function's {self.streams} "
                "streams, counted from 0",
                location=source_location(op),
            )
        return stream

    def _alone(self) -> InterOpStep:
        clock = tuple(map(max, zip(*self._known, strict=True)))
        number = clock[-1] + 1
        self._known = [[*clock[:-1], number] for _ in self._known]
        return InterOpStep(None, number, clock)

    def _on_stream(self, op: Operation, stream: int) -> InterOpStep:
        known = self._known[stream]
        makers = [self.steps[maker] for operand in op.operands for maker in makers_of(operand)]
        # A wait that the latest of these kernels already implies is left out.
        waits: list[tuple[int, int]] = []
        for maker in sorted(makers, key=lambda maker: -sum(maker.clock)):
            if maker.stream is not None and maker.number > known[maker.stream]:
                waits.append((maker.stream, maker.number))
                known[:] = map(max, known, maker.clock)
                known[maker.stream] = maker.number
        number = known[stream] + 1
        step = InterOpStep(stream, number, tuple(known), tuple(waits))
        known[stream] = number
        return step


def makers_of(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that write the content of `value`.

    Views, and ops that only join memory, write nothing.
    """
    owner = value.owner
    if not isinstance(owner, Operation):
        return
    if _runs(owner):
        yield owner
    else:
        for operand in owner.operands:
            yield from makers_of(operand)


def _runs(op: Operation) -> bool:
    """Return whether `op` reads or writes memory when the function runs."""
    if is_leaf(op) or is_view(op) or is_only_storage(op):
        return False
    values = (*op.operands, *op.results)
    touches = any(isinstance(value.type, TensorType) for value in values)
    return touches or bool(op.regions) or isinstance(op, CallOp) or op.next_op is None


def _integer(op: Operation, name: str) -> int | None:
    attribute = op.attributes.get(name)
    if attribute is None:
        return None
    if not isinstance(attribute, IntegerAttr):
        raise BraidError(
            f"{name} is {attribute}, expected an integer", location=source_location(op)
        )
    return attribute.value.data
