"""Which items cannot be where, relative to each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from braid.solvers.packing.problem import Item

Forbidden = tuple[int, int, int]


@dataclass(frozen=True)
class Conflicts:
    """For every item, its `(other, low, high)`: base - base of `other` is not in (low, high)."""

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


def find_conflicts(items: Sequence[Item]) -> Conflicts:
    """Return the conflicts between all pairs of items with parts that are live together."""
    owner: list[int] = []
    starts: list[int] = []
    sizes: list[int] = []
    intervals: list[tuple[int, int, int]] = []
    for index, item in enumerate(items):
        for part in item.parts:
            intervals.extend((begin, end, len(owner)) for begin, end in part.lifetimes)
            owner.append(index)
            starts.append(part.start)
            sizes.append(part.size)
    of_item: list[list[Forbidden]] = [[] for _ in items]
    for first, second in _overlapping_parts(intervals, len(owner)):
        i, j = owner[first], owner[second]
        if i == j:
            continue
        low = starts[second] - starts[first] - sizes[first]
        high = starts[second] + sizes[second] - starts[first]
        of_item[i].append((j, low, high))
        of_item[j].append((i, -high, -low))
    return Conflicts(of_item)


def _overlapping_parts(
    intervals: list[tuple[int, int, int]], part_count: int
) -> list[tuple[int, int]]:
    """Return each pair of parts once of which an interval of one meets one of the other."""
    if not intervals:
        return []
    table: NDArray[np.int64] = np.array(sorted(intervals), dtype=np.int64)
    begins, ends, parts = table[:, 0], table[:, 1], table[:, 2]
    # Sorted by begin, the intervals that begin within interval k are the ones right after it.
    position = np.arange(len(table))
    counts = np.searchsorted(begins, ends, side="left") - position - 1
    first = np.repeat(position, counts)
    shift = np.repeat(np.cumsum(counts) - counts, counts)
    second = np.arange(int(counts.sum())) - shift + first + 1
    low = np.minimum(parts[first], parts[second])
    high = np.maximum(parts[first], parts[second])
    keys = np.unique(low * part_count + high)
    pairs = np.stack([keys // part_count, keys % part_count], axis=1)
    return [(a, b) for a, b in pairs.tolist()]
