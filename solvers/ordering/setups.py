"""What must be loaded between two ops because the chip does not hold the operands of both.

Ops of one unit that share all operands but one form a group. Where the operands and the result of
any of them leave no room for the other one's own operand, that operand comes onto the chip after
the op before it in the group has run, and until then the op waits: a setup, as in a sequence on
one machine with sequence-dependent setup times. Whatever else runs meanwhile, a group takes its
work and a setup for each own operand but the first; which that is, an order decides, so that the
longest is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.solvers.ordering.traffic import Traffic

Stages = Sequence[Sequence[tuple[int, float, bool]]]


@dataclass(frozen=True)
class Setup:
    """Loading the `operand` that an op has for its own in its `group` takes `seconds`."""

    group: int
    operand: int
    seconds: float


def setups(stages: Stages, traffic: Traffic) -> dict[int, Setup]:
    """The setups by op, of ops with one stage; `stages` are (unit, seconds, waits) by op."""
    groups: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
    for op, reads in traffic.reads.items():
        leaves = [(traffic.values[v].size, v) for v in reads if traffic.values[v].is_leaf]
        if leaves and len(stages[op]) == 1 and stages[op][0][2]:
            own = max(leaves)[1]
            shared = tuple(sorted(v for v in reads if v != own))
            groups.setdefault((stages[op][0][0], shared), []).append((op, own))
    found: dict[int, Setup] = {}
    for number, members in enumerate(groups.values()):
        room = traffic.capacity - min(_held(traffic, op) for op, _ in members)
        if min(traffic.values[own].size for _, own in members) > room:
            found |= {op: Setup(number, own, traffic.values[own].load) for op, own in members}
    return found


def _held(traffic: Traffic, op: int) -> int:
    """Bytes on the chip while `op` runs, whether or not its result lies over an operand."""
    made = () if op in traffic.over else traffic.makes.get(op, ())
    return sum(traffic.values[v].size for v in (*traffic.reads.get(op, ()), *made))
