"""Check the reads and writes of kernels on streams while others may still run."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.strided_storage import is_only_storage
from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.attribute_names import INTER_OP_STREAM, INTER_OP_STREAMS
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.verification.claims import name_of
from braid.passes.verification.tags import Memory, Place

_Used: TypeAlias = tuple[Place, Sequence[Place]]
"""A place, without the bytes that are not touched."""


class SideBySide:
    """The ops of a function's body, gone through in their order; which have ended is known.

    A call on a stream begins when the previous call of that stream, and the calls that made its
    operands, have ended. Any other op waits for all ops before it, and all ops after it wait for
    it.
    """

    def __init__(self, function: FuncOp) -> None:
        streams = function.attributes.get(INTER_OP_STREAMS)
        self._streams = streams.value.data if isinstance(streams, IntegerAttr) else 1
        self._body = function.body.block
        self._now: Operation | None = None
        self._latest: dict[int, Operation] = {}
        self._ended: dict[Operation, frozenset[Operation]] = {}
        self._reads: dict[Operation, list[_Used]] = {}
        self._writes: dict[Operation, list[_Used]] = {}

    def enter(self, op: Operation) -> None:
        """Take what follows as read and written by `op`, if that is an op of the body."""
        if op.parent is not self._body or self._streams == 1:
            return
        self._now = None
        stream = op.attributes.get(INTER_OP_STREAM) if isinstance(op, CallOp) else None
        if isinstance(stream, IntegerAttr):
            before = [maker for operand in op.operands for maker in _makers(operand)]
            if (latest := self._latest.get(stream.value.data)) is not None:
                before.append(latest)
            known = [self._ended[other] | {other} for other in before if other in self._ended]
            self._ended[op] = frozenset[Operation]().union(*known)
            self._latest[stream.value.data] = self._now = op
        elif _runs(op):
            for table in (self._latest, self._ended, self._reads, self._writes):
                table.clear()

    def read(self, place: Place, memory: Memory) -> None:
        """Raise WrongClaimError if another call may still write the memory that is read."""
        self._note((place, ()), memory, self._reads, (self._writes,))

    def write(self, place: Place, memory: Memory, kept: Sequence[Place] = ()) -> None:
        """Raise WrongClaimError if another call may still use the memory that is written.

        The `kept` part of the place does not change.
        """
        self._note((place, kept), memory, self._writes, (self._reads, self._writes))

    def _note(
        self,
        used: _Used,
        memory: Memory,
        own: dict[Operation, list[_Used]],
        others: tuple[dict[Operation, list[_Used]], ...],
    ) -> None:
        if self._now is None:
            return
        ended = self._ended[self._now] | {self._now}
        for table in others:
            for other, places in table.items():
                if other not in ended and any(_meet(used, each, memory) for each in places):
                    raise WrongClaimError(
                        f"{name_of(self._now)} uses memory of {name_of(other)} on another stream, "
                        "which may still run"
                    )
        own.setdefault(self._now, []).append(used)


def _meet(first: _Used, second: _Used, memory: Memory) -> bool:
    """Return whether two calls use a byte in common."""
    if not memory.overlap(first[0], second[0]):
        return False
    return not (first[1] or second[1]) or memory.overlap_but(first, second)


def _runs(op: Operation) -> bool:
    """Return whether an op that has no stream does anything when the function runs."""
    if isinstance(op, ConstantOp | ParameterOp) or is_view(op) or is_only_storage(op):
        return False
    has_tensors = any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results))
    return has_tensors or bool(op.regions) or isinstance(op, CallOp) or op.next_op is None


def _makers(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that wrote what `value` shows."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return
    if _runs(owner):
        yield owner
    else:
        for operand in owner.operands:
            yield from _makers(operand)
