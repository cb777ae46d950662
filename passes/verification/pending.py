"""Track concurrent work, and the memory it uses until it is known to have ended."""

import itertools
from collections.abc import Iterable, Sequence

from xdsl.ir import Operation, SSAValue

from braid.dialects.braid.launch import LaunchOp
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.verification.claims import name_of
from braid.passes.verification.tags import Memory, Place


class Pending:
    """The places that launches that may still run read and write."""

    def __init__(self) -> None:
        self._reads: dict[SSAValue, list[Place]] = {}
        self._writes: dict[SSAValue, list[Place]] = {}

    def begin(self, op: LaunchOp, reads: Sequence[Place], writes: Sequence[Place]) -> None:
        """Note that `op` runs from here on, until a wait for its token or for one that depends on
        it.
        """
        self._reads[op.token], self._writes[op.token] = list(reads), list(writes)

    def end(self, tokens: Iterable[SSAValue]) -> None:
        """Note that the ops of `tokens` have ended, and all that they waited for."""
        for token in _ended_by(tokens):
            self._reads.pop(token, None)
            self._writes.pop(token, None)

    def require_no_writer(self, op: Operation, place: Place, memory: Memory) -> None:
        """Raise WrongClaimError where what `op` reads may still be written."""
        self._require(op, place, memory, (self._writes,))

    def require_unused(self, op: Operation, place: Place, memory: Memory) -> None:
        """Raise WrongClaimError where what `op` writes may still be read or written."""
        self._require(op, place, memory, (self._reads, self._writes))

    def _require(
        self,
        op: Operation,
        place: Place,
        memory: Memory,
        used: Sequence[dict[SSAValue, list[Place]]],
    ) -> None:
        ended = _ended_by(op.dependencies) if isinstance(op, LaunchOp) else set[SSAValue]()
        for token, places in itertools.chain.from_iterable(table.items() for table in used):
            if token not in ended and any(memory.overlap(place, other) for other in places):
                raise WrongClaimError(f"{name_of(op)} uses memory of a launch that may still run")


def _ended_by(tokens: Iterable[SSAValue]) -> set[SSAValue]:
    """Return the tokens, and those that their launches waited for."""
    found: set[SSAValue] = set()
    todo = list(tokens)
    while todo:
        token = todo.pop()
        if token not in found:
            found.add(token)
            if isinstance(token.owner, LaunchOp):
                todo.extend(token.owner.dependencies)
    return found
