"""Units that share the work of their kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Slots:
    """The units of kind k are those from `begin[k]` on to before `begin[k + 1]`."""

    begin: tuple[int, ...]

    @staticmethod
    def of(counts: Sequence[int], kinds: int) -> "Slots":
        """Return `counts` slots of each of `kinds`, one where a count is missing."""
        begin = [0]
        for kind in range(kinds):
            begin.append(begin[-1] + (counts[kind] if kind < len(counts) else 1))
        return Slots(tuple(begin))

    def __len__(self) -> int:
        return self.begin[-1]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Return the number of units of each kind."""
        return tuple(len(units) for units in self.ranges)

    @cached_property
    def ranges(self) -> tuple[range, ...]:
        """The units of each kind."""
        return tuple(map(range, self.begin[:-1], self.begin[1:]))

    def first_free(self, kind: int, free: Sequence[float]) -> int:
        """Return the unit of this kind that is free first, of several the lowest number."""
        units = self.ranges[kind]
        return units[0] if len(units) == 1 else min(units, key=free.__getitem__)


def least_end(free: Sequence[float], work: float) -> float:
    """Return when units have done `work` together that are `free` (ascending) from these times on.

    If the first k units share it, the end is (work + their times) / k; the least counts.
    """
    total, best = work, float("inf")
    for place, time in enumerate(free, 1):
        total += time
        best = min(best, total / place)
    return best
