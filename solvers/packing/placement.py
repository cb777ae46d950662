"""Place items one by one, each into a gap between those already placed."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.packing.conflicts import Conflicts
from braid.solvers.packing.problem import Item

UNPLACED = -1

Bases = Sequence[int] | Mapping[int, int]
"""The addresses of items, by item: of all, or of some."""


class Placer:
    """Places items under their conflicts. `fixed` items of a run keep the given base."""

    def __init__(self, items: Sequence[Item], conflicts: Conflicts) -> None:
        self.items = items
        self.conflicts = conflicts.of_item
        self.alignments = [item.alignment for item in items]
        self.extents = [item.extent for item in items]

    def start(self, members: Iterable[int]) -> dict[int, int]:
        """Return the bases of `members` before anything but the fixed items is placed."""
        fixed = ((i, self.items[i].fixed) for i in members)
        return {i: UNPLACED if base is None else base for i, base in fixed}

    def height(self, bases: Bases, members: Sequence[int]) -> int:
        """Return the end of the highest of `members`."""
        return max((bases[i] + self.extents[i] for i in members), default=0)

    def lowest(self, item: int, bases: Bases) -> int:
        """Return the lowest base of `item` that conflicts with nothing placed."""
        base = 0
        alignment = self.alignments[item]
        for low, high in self._blocked(item, bases):
            if low >= base:
                break
            if high > base:
                base = -(-high // alignment) * alignment
        return base

    def tightest(self, item: int, bases: Bases) -> int:
        """Return the base in the smallest gap that takes `item`, else on top of all."""
        base, chosen, smallest = 0, UNPLACED, 0
        alignment = self.alignments[item]
        for low, high in self._blocked(item, bases):
            if low >= base and (chosen == UNPLACED or low - base < smallest):
                chosen, smallest = base, low - base
            if high > base:
                base = -(-high // alignment) * alignment
        return base if chosen == UNPLACED else chosen

    def _blocked(self, item: int, bases: Bases) -> list[tuple[int, int]]:
        """Return the open intervals that the base of `item` must avoid, ascending."""
        return sorted(
            (bases[other] + low, bases[other] + high)
            for other, low, high in self.conflicts[item]
            if bases[other] != UNPLACED
        )

    def in_order(
        self, order: Sequence[int], *, tight: bool = False, deadline: Deadline = NEVER
    ) -> dict[int, int]:
        """Return the bases when the items of `order` are placed in that order.

        Items with which they conflict are among them. Raises OutOfTime at `deadline`.
        """
        bases = self.start(order)
        place = self.tightest if tight else self.lowest
        for item in order:
            if bases[item] == UNPLACED:
                deadline.check()
                bases[item] = place(item, bases)
        return bases

    def lowest_first(
        self, members: Sequence[int], rank: Mapping[int, float], deadline: Deadline = NEVER
    ) -> dict[int, int]:
        """Return the bases when always the item that can lie lowest is placed, then least rank.

        This is the best-fit rule for known lifetimes of Sekiyama et al., "Profile-guided memory
        optimization for deep neural networks" (2018), with holes filled.

        Raises OutOfTime at `deadline`.
        """
        bases = self.start(members)
        queue = [
            (self.lowest(item, bases), rank[item], item)
            for item in members
            if bases[item] == UNPLACED
        ]
        heapify(queue)
        while queue:
            deadline.check()
            base, _, item = heappop(queue)
            # Placing items only takes space away, so a stale entry is a lower bound.
            current = self.lowest(item, bases)
            if current > base:
                heappush(queue, (current, rank[item], item))
            else:
                bases[item] = base
        return bases
