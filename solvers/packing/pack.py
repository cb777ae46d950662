"""Pack buffers into one arena: fast rules first, exact search if they miss the bound."""

from collections.abc import Sequence

from braid.solvers.cp_sat import has_cp_sat
from braid.solvers.deadline import Deadline, OutOfTime
from braid.solvers.packing.bounds import check_fixed, max_live
from braid.solvers.packing.canonical import fill, search
from braid.solvers.packing.conflicts import Conflicts, find_conflicts
from braid.solvers.packing.first_fit import first_fit
from braid.solvers.packing.heuristics import greedy, orders, promote
from braid.solvers.packing.placement import Bases, Placer
from braid.solvers.packing.problem import Buffer, Item, Packing, gather_items, validate

EXACT_MEMBERS = 4000
"""Components with more items are left to the heuristics: their models would not be solved."""
SEARCHING = 0.8
"""Share of the time for the search from the bottom up, before that by constraint programming."""
HARD_MEMBERS = 150
"""The items from which on constraint programming seldom finds what the search does not."""
SEARCHING_HARD = 0.95
"""The share of the time for the search where there are many."""
EASY_MEMBERS = 30
"""The items up to which constraint programming proves more in the same time."""

GRACE = 0.3
"""Seconds that items are placed for, one by one, where there was no time for anything before."""


def pack(
    buffers: Sequence[Buffer],
    *,
    capacity: int | None = None,
    time_limit: float = 10.0,
    seed: int = 0,
    workers: int = 1,
) -> Packing:
    """Assign offsets such that buffers that are live together do not overlap.

    Minimizes the arena; with `capacity` (bytes) it stops as soon as the arena is no larger, and
    whether it is no larger is for the caller to check. `time_limit` is in seconds. The result is
    the same for the same seed as long as no search runs into the limit. Sets of buffers that do
    not meet in time are packed each on its own.

    Raises ValueError for negative sizes, lifetimes that end before they begin, and fixed offsets
    that are misaligned or overlap.
    """
    validate(buffers)
    items, item_of = gather_items(buffers)
    packer = _Packer(items, Deadline.after(time_limit), seed, workers)
    packer.run(capacity)
    offsets = tuple(
        packer.bases[item] + buffer.group_offset
        for buffer, item in zip(buffers, item_of, strict=True)
    )
    size = max(
        (o + b.size for o, b in zip(offsets, buffers, strict=True) if b.size and b.lifetimes),
        default=0,
    )
    return Packing(offsets, size, packer.lower_bound)


class _Packer:
    """Packs the components of `items` until the highest of them cannot be lowered."""

    def __init__(self, items: Sequence[Item], deadline: Deadline, seed: int, workers: int) -> None:
        self.items = items
        self.deadline = deadline
        self.seed = seed
        self.workers = workers
        check_fixed(items)
        self.lower_bound = max_live(items)
        try:
            conflicts = find_conflicts(items, deadline.share(0.5))
        except OutOfTime:
            conflicts = None
        self.placer = Placer(items, conflicts or Conflicts([[] for _ in items]))
        self.components = conflicts.components() if conflicts else []
        self.bases = list(self.placer.start(range(len(items))).values())
        if not conflicts:
            self._place_late()

    def run(self, capacity: int | None) -> None:
        """Pack all; the higher of `capacity` and the bound is good enough."""
        target = max(self.lower_bound, capacity or 0)
        for members in self.components:
            bases = greedy(self.placer, members, target, self.deadline)
            if bases is None:
                self._place_late()
                return
            self._adopt(bases, members)
        # The component that is highest after the greedy rules is likely to be the hardest.
        components = [own for own in self.components if any(self.items[i].parts for i in own)]
        for members in sorted(components, key=self._height, reverse=True):
            target = max(self.lower_bound, capacity or 0)
            if self._height(members) > target:
                self._improve(members, target)

    def _place_late(self) -> None:
        """Place all items if there is no time for a rule."""
        self.bases = first_fit(self.items, self.deadline.later_by(GRACE))

    def _improve(self, members: list[int], target: int) -> None:
        deadline = self.deadline.share(0.1)
        if len(members) <= EXACT_MEMBERS:
            filled = fill(self.placer, members, target, deadline, self.seed)
            if filled is not None:
                self._adopt(filled, members)
                return
        deadline = self.deadline.share(0.1)
        bases = promote(self.placer, members, self.bases, target, deadline, self.seed)
        self._adopt(bases, members)
        if self._height(members) > target and len(members) <= EXACT_MEMBERS:
            target = self._search(members, target)
        if self._height(members) > target and len(members) <= EXACT_MEMBERS:
            self._improve_exactly(members, target)

    def _search(self, members: list[int], target: int) -> int:
        """Search for a packing that ends at `target`; return that or the next higher bound."""
        if self.deadline.passed:
            return target
        share = SEARCHING_HARD if len(members) > HARD_MEMBERS else SEARCHING
        deadline = self.deadline.share(share if len(members) > EASY_MEMBERS else 1 - SEARCHING)
        bases, infeasible = search(self.placer, members, target, deadline, self.seed)
        if bases is not None:
            self._adopt(bases, members)
        if infeasible:
            self.lower_bound = max(self.lower_bound, target + 1)
        return max(target, self.lower_bound)

    def _improve_exactly(self, members: list[int], target: int) -> None:
        if self.deadline.passed or not has_cp_sat():
            return
        # Here, since CP-SAT takes half a second to import and is seldom needed.
        from braid.solvers.packing.exact import Search, fit, minimize

        def effort(share: float) -> Search:
            return Search(share * self.deadline.remaining, self.seed, self.workers)

        dives = orders(self.placer, members)
        found = fit(self.items, members, target, dives, effort(0.5))
        if found.bases is not None:
            self._adopt(found.bases, members)
            return
        self.lower_bound = max(self.lower_bound, found.lower_bound)
        limits = (max(target, found.lower_bound), self._height(members))
        if limits[0] >= limits[1] or self.deadline.passed:
            return
        best = minimize(self.items, members, self.bases, limits, effort(1.0))
        if best.bases is not None:
            self._adopt(best.bases, members)
        if best.lower_bound > target:
            self.lower_bound = max(self.lower_bound, best.lower_bound)

    def _adopt(self, bases: Bases, members: Sequence[int]) -> None:
        for i in members:
            self.bases[i] = bases[i]

    def _height(self, members: Sequence[int]) -> int:
        return self.placer.height(self.bases, members)
