"""Deciding which operands lie where results begin: those without which the arena is smaller."""

from collections.abc import Iterable
from functools import partial

from xdsl.dialects.func import FuncOp

from braid.analysis.storage.strided_storage import is_only_storage, set_overlap, stored_choice
from braid.dialects.braid.buffer import ALIGNMENT
from braid.dialects.braid.regions import FusedOp
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.overlaps import link_overlaps
from braid.passes.storage.placement import live_at_peak, live_peak, place_in_outputs
from braid.passes.storage.storage import Storage
from braid.passes.storage.storage_assignment import StorageAssignment
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.kernels.equal_groups import EqualGroups
from braid.targets.kernels.kernel_family import Overlap


def select_overlaps(function: FuncOp, costs: DeviceCosts, memories: MemorySpaces) -> int:
    """Write `braid.overlap` on groups of `function`; returns by how many bytes the arena shrinks.

    Only where the operand is live at the peak of what has no place in an output, and without it
    the peak is lower, the scratch memory of the kernel counted: writing over operands costs
    kernels a little time.
    """
    choices = _Choices(function, costs, memories)
    if not choices.offers:
        return 0
    storages = choices.plan()
    first = best = live_peak(storages)
    while taken := choices.take_at_peak(storages):
        storages = choices.plan()
        if live_peak(storages) >= best:
            choices.leave(taken)
            break
        best = live_peak(storages)
        for group in taken:
            choices.leave([group])
            if live_peak(choices.plan()) > best:
                choices.take(group)
        storages = choices.plan()
    return first - best


class _Choices:
    """The groups that can write over an operand, and those that are to do so."""

    def __init__(self, function: FuncOp, costs: DeviceCosts, memories: MemorySpaces) -> None:
        self._function, self._memories = function, memories
        offers = EqualGroups(partial(_offer, costs=costs))
        self.offers = {
            op: offer
            for op in function.walk()
            if isinstance(op, FusedOp) and (offer := offers.of(op)) is not None
        }
        self._taken: set[FusedOp] = set()
        self._values: StorageAssignment

    def plan(self) -> list[Storage]:
        """Return all storages, with those in the memory of outputs."""
        self._values = values = StorageAssignment(self._function, self._memories)
        link_overlaps(self._function, values)
        storages = list(dict.fromkeys(values.of.values()))
        place_in_outputs(storages)
        for group in self._taken:
            number = values.numbering.span(group).start
            scratch = self.offers[group].scratch_bytes
            storages.append(Storage(scratch, number, number, ALIGNMENT, values.memory_of(group)))
        return storages

    def take_at_peak(self, storages: list[Storage]) -> list[FusedOp]:
        """Take a remaining candidate whose operand is at the peak of `storages`, the last plan."""
        peak = live_at_peak(storages)
        found = [
            group
            for group, offer in self.offers.items()
            if group not in self._taken and self._values.of[group.operands[offer.operand]] in peak
        ]
        for group in found:
            self.take(group)
        self.plan()
        vain = [group for group in found if not self._is_linked(group)]
        self.leave(vain)
        return [group for group in found if group not in vain]

    def take(self, group: FusedOp) -> None:
        """Let `group` write over its operand."""
        self._taken.add(group)
        set_overlap(group, self.offers[group].operand)

    def leave(self, groups: Iterable[FusedOp]) -> None:
        """Let `groups` write elsewhere."""
        for group in groups:
            self._taken.discard(group)
            set_overlap(group, None)

    def _is_linked(self, group: FusedOp) -> bool:
        operand = group.operands[self.offers[group].operand]
        return self._values.of[operand].within is self._values.of[group.results[0]]


def _offer(group: FusedOp, costs: DeviceCosts) -> Overlap | None:
    """Return over which operand the kernel of `group` can write."""
    if is_only_storage(group):
        return None
    match = costs.kernels.match(group, stored_choice(group))
    return None if match is None else match.candidate.overlap()
