"""The sets of all blocks of a function: what a block needs of the blocks around it, too."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.memory_graph import MemoryGraph
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.passes.rematerialization.rematerialization_sets import (
    Criteria,
    readers_of,
    select_sets,
)


@dataclass
class PlannedSet:
    """The ops `members`, in the order of the text, recomputed for what `reader` reads of `tensor`.

    `bytes` is the size of the tensor; `reasons` are the names of the criteria that held.
    """

    tensor: SSAValue
    bytes: int
    reader: Operation
    members: tuple[Operation, ...]
    reasons: tuple[str, ...]


def sets_of_function(function: FuncOp, criteria: Criteria) -> list[PlannedSet]:
    """Return the sets that `criteria` pick in all blocks, outer blocks first.

    A set whose reader is control flow becomes one for each op in it that reads the tensor and is
    run itself. If such an op is a member of sets of its own block, these sets get the members, too:
    values that are not stored for it are not stored for its copies.
    """
    blocks: list[list[PlannedSet]] = []
    with_member: dict[Operation, list[PlannedSet]] = {}
    gone: set[Operation] = set()
    for block in reversed(list(blocks_outside_groups(function))):
        graph, own = MemoryGraph.of(block), list[PlannedSet]()
        sets, kept = select_sets(graph, criteria)
        for chosen in sets:
            tensor, size = graph.tensors[chosen.tensor], graph.sizes[chosen.tensor]
            members = tuple(graph.ops[member] for member in chosen.members)
            for reader in readers_of(graph, chosen.tensor, chosen.reader):
                for planned in list(with_member.get(reader, ())):
                    _note(planned, _join(planned, members, criteria), with_member)
                if reader not in gone:
                    own.append(PlannedSet(tensor, size, reader, members, chosen.reasons))
                    _note(own[-1], members, with_member)
        blocks.append(own)
        gone.update(op for number, op in enumerate(graph.ops) if number not in kept)
    return [planned for own in reversed(blocks) for planned in own]


def _note(
    planned: PlannedSet,
    members: Sequence[Operation],
    with_member: dict[Operation, list[PlannedSet]],
) -> None:
    for member in members:
        with_member.setdefault(member, []).append(planned)


def _join(
    planned: PlannedSet, members: tuple[Operation, ...], criteria: Criteria
) -> tuple[Operation, ...]:
    """Add ops of a surrounding block, unless the set would have two anchors, and return the new
    ones."""
    more = tuple(member for member in members if member not in planned.members)
    if all(any(map(criteria.rules.is_anchor, ops)) for ops in (more, planned.members)):
        return ()
    planned.members = (*more, *planned.members)
    return more
