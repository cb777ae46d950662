"""Compute the live ranges of values, over nested control flow.

Ops are numbered in the order in which they stand; an op with regions spans from its own number to
its end. Values that a loop reads from outside are live until the loop's end, since the next
iteration reads them again. Operands and results of a launch are live until the launch has ended.
Exclusive branches are numbered one after the other, so values that live inside different branches
of one op are never live at the same number.
"""

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from braid.analysis.structure.nesting import parent_block
from braid.dialects.braid.launch import AwaitOp, LaunchOp

LOOPS = (scf.ForOp, scf.WhileOp)


@dataclass(frozen=True)
class Span:
    """The numbers of an op: `start` its own, `end` the last one inside it."""

    start: int
    end: int


class Numbering:
    """Numbers all ops of a region and its nested regions, in one walk."""

    def __init__(self, region: Region) -> None:
        self._spans: dict[Operation, Span] = {}
        self._next = 0
        self._number(region)
        self._ends: dict[LaunchOp, int] = {}
        for op in reversed(self._spans):
            if isinstance(op, LaunchOp):
                self._ends[op] = self._end(op)

    def _number(self, region: Region) -> None:
        for block in region.blocks:
            for op in block.ops:
                start = self._next
                self._next += 1
                for inner in op.regions:
                    self._number(inner)
                if op.regions:
                    self._next += 1
                self._spans[op] = Span(start, self._next - 1)

    def __len__(self) -> int:
        return self._next

    def span(self, op: Operation) -> Span:
        """Return the numbers of `op`."""
        return self._spans[op]

    def last_use(self, value: SSAValue) -> int:
        """Return the last number at which `value` is read; that of its definition if it
        never is.
        """
        home = parent_block(value)
        owner = value.owner
        latest = self.definition(value)
        if isinstance(owner, LaunchOp):
            latest = self.ended(owner)
        for use in value.uses:
            latest = max(latest, self._use_number(use.operation, home))
        return latest

    def definition(self, value: SSAValue) -> int:
        """Return the number at which `value` begins: its op, or the op whose region has it."""
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            span = self._spans.get(parent) if parent is not None else None
            return span.start if span is not None else -1
        return self._spans[owner].start

    def ended(self, launch: LaunchOp) -> int:
        """Return the number of the first op of its block before which `launch` is known to have
        ended.

        That is the end of the function where nothing in the block waits for it.
        """
        return self._ends[launch]

    def _end(self, launch: LaunchOp) -> int:
        """Return when the last use of a value ends, as `ended`, with known ends of later
        launches.
        """
        known = [self._next]
        for use in launch.token.uses:
            user = use.operation
            if user.parent is launch.parent and isinstance(user, LaunchOp):
                known.append(self._ends[user])
            elif user.parent is launch.parent and isinstance(user, AwaitOp):
                known.append(self._spans[user].start)
        return min(known)

    def _use_number(self, user: Operation, home: Block) -> int:
        number = self._spans[user].start
        if isinstance(user, LaunchOp):
            number = self.ended(user)
        op: Operation | None = user
        while op is not None and op.parent is not home:
            op = op.parent_op()
            if isinstance(op, LOOPS):
                number = self._spans[op].end
        return number
