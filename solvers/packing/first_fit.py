"""Packing without a list of conflicts, which always terminates.

The largest items first, each as low as it can lie; when no time is left, on top of what is there.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from braid.solvers.deadline import Deadline
from braid.solvers.packing.problem import Item


def first_fit(items: Sequence[Item], deadline: Deadline) -> list[int]:
    """Return bases without overlaps; fixed items keep theirs.

    Items that are not placed at `deadline` go on top of the others, which takes little time.
    """
    ground = _Ground(items)
    bases = [0] * len(items)
    free: list[int] = []
    for index, item in enumerate(items):
        if item.fixed is None:
            free.append(index)
        else:
            bases[index] = item.fixed
            ground.lay(item, item.fixed)
    is_late = False
    for index in sorted(free, key=lambda i: (-items[i].extent, -items[i].duration, i)):
        is_late = is_late or deadline.passed
        bases[index] = ground.top(items[index]) if is_late else ground.lowest(items[index])
        ground.lay(items[index], bases[index])
    return bases


class _Ground:
    """The lifetimes and bytes of placed items, and the offset from which each moment is free."""

    def __init__(self, items: Sequence[Item]) -> None:
        parts = [part for item in items for part in item.parts]
        times = sorted({time for part in parts for own in part.lifetimes for time in own})
        self._section = {time: place for place, time in enumerate(times)}
        self._top = np.zeros(max(len(times), 1), np.int64)
        count = sum(len(part.lifetimes) for part in parts)
        self._table: NDArray[np.int64] = np.zeros((4, count), np.int64)
        self._count = 0

    def _stretches(self, item: Item) -> Iterator[tuple[int, int, int, int]]:
        """Return the sections, and bytes from the base, in which the item lives."""
        for part in item.parts:
            for begin, end in part.lifetimes:
                sections = self._section[begin], self._section[end]
                yield *sections, part.start, part.start + part.size

    def lay(self, item: Item, base: int) -> None:
        """Place an item."""
        for begin, end, low, high in self._stretches(item):
            self._table[:, self._count] = begin, end, base + low, base + high
            self._count += 1
            np.maximum(self._top[begin:end], base + high, out=self._top[begin:end])

    def top(self, item: Item) -> int:
        """Return the lowest base of an item with nothing above it."""
        stretches = self._stretches(item)
        base = max((int(self._top[a:b].max()) - low for a, b, low, _ in stretches), default=0)
        return -(-max(base, 0) // item.alignment) * item.alignment

    def lowest(self, item: Item) -> int:
        """Return the lowest base of an item."""
        begins, ends, lows, highs = self._table[:, : self._count]
        under: list[NDArray[np.int64]] = []
        over: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        for begin, end, low, high in self._stretches(item):
            meets = (begins < end) & (ends > begin)
            under.append(lows[meets] - high)  # bases from which on it reaches what is there
            over.append(highs[meets] - low)
        blocked = np.concatenate(under) if under else np.zeros(0, np.int64)
        order = np.argsort(blocked)
        free_from = np.concatenate(over)
        free_from[1:] = free_from[1:][order]
        bases = np.maximum.accumulate(-(-free_from // item.alignment) * item.alignment)
        fits = np.append(blocked[order] >= bases[:-1], True)
        return int(bases[int(fits.argmax())])
