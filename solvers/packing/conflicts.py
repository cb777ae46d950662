"""Find the places that items cannot have relative to each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from braid.solvers.deadline import NEVER, Deadline, OutOfTime
from braid.solvers.packing.problem import Item, Part

_MOST = 10_000_000
"""Conflicts above which they are not listed: each takes about 130 bytes."""

Forbidden = tuple[int, int, int]


@dataclass(frozen=True)
class Conflicts:
    """The `(other, low, high)` of every item: its base - that of `other` is not in (low, high)."""

    of_item: list[list[Forbidden]]

    def components(self) -> list[list[int]]:
        """Return the sets of items that do not constrain each other, each in ascending order."""
        seen = [False] * len(self.of_item)
        found: list[list[int]] = []
        for root in range(len(self.of_item)):
            if seen[root]:
                continue
            seen[root] = True
            component = [root]
            for item in component:
                for other, _, _ in self.of_item[item]:
                    if not seen[other]:
                        seen[other] = True
                        component.append(other)
            found.append(sorted(component))
        return found


def find_conflicts(items: Sequence[Item], deadline: Deadline = NEVER) -> Conflicts:
    """Return the conflicts between all pairs of items with parts that are live together.

    Raises OutOfTime at `deadline`, or where there are more than fit into memory.
    """
    parts = _Parts(items)
    of_item: list[list[Forbidden]] = []
    count = 0
    for index, item in enumerate(items):
        deadline.check()
        own = [entry for part in item.parts for entry in parts.forbidden(index, part)]
        count += len(own)
        if count > _MOST:
            raise OutOfTime
        of_item.append(own)
    return Conflicts(of_item)


class _Parts:
    """The parts of all items, and the intervals in which they are live by their begins."""

    def __init__(self, items: Sequence[Item]) -> None:
        parts = [(index, part) for index, item in enumerate(items) for part in item.parts]
        self._owner = np.array([index for index, _ in parts], np.int64)
        self._start = np.array([part.start for _, part in parts], np.int64)
        self._end = np.array([part.start + part.size for _, part in parts], np.int64)
        intervals = sorted(
            (begin, end, number)
            for number, (_, part) in enumerate(parts)
            for begin, end in part.lifetimes
        )
        table: NDArray[np.int64] = np.array(intervals, np.int64).reshape(-1, 3)
        self._begins, self._ends = table[:, 0].copy(), table[:, 1].copy()
        self._part = table[:, 2].copy()
        self._several = len(table) > len(parts)

    def forbidden(self, index: int, part: Part) -> Iterator[Forbidden]:
        """Return the conflicts between one part of item `index` and the parts of other items."""
        found: list[NDArray[np.int64]] = []
        for begin, end in part.lifetimes:
            before = int(np.searchsorted(self._begins, end))
            found.append(self._part[:before][self._ends[:before] > begin])
        others = np.unique(np.concatenate(found)) if self._several else found[0]
        others = others[self._owner[others] != index]
        return zip(
            self._owner[others].tolist(),
            (self._start[others] - part.start - part.size).tolist(),
            (self._end[others] - part.start).tolist(),
            strict=True,
        )
