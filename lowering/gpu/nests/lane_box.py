"""The points that a thread computes together: a box of the last dims of a nest.

The box covers the last dims and a part of the dim before them. So its points are contiguous in a
dense result, and any linear access reads them at offsets that are the same for all threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from braid.lowering.gpu.nests.linear_access import LinearAccess


@dataclass(frozen=True)
class LaneBox:
    """A box of points along the dims of a nest of these extents."""

    extents: tuple[int, ...]
    counts: tuple[int, ...]

    @staticmethod
    def of(extents: Sequence[int], width: int) -> "LaneBox | None":
        """Return the box of `width` points; None where whole boxes do not fill the nest."""
        counts, rest = [1] * len(extents), width
        for dim in reversed(range(len(extents))):
            if rest == 1:
                break
            counts[dim] = min(rest, extents[dim])
            if rest % counts[dim] or extents[dim] % counts[dim]:
                return None
            rest //= counts[dim]
        return LaneBox(tuple(extents), tuple(counts)) if rest == 1 else None

    @property
    def width(self) -> int:
        """Return the number of points."""
        return prod(self.counts)

    def lane(self, number: int) -> tuple[int, ...]:
        """Return the indices of a point, from those of the first on."""
        found: list[int] = []
        for count in reversed(self.counts):
            number, index = divmod(number, count)
            found.append(index)
        return tuple(reversed(found))

    def offsets(self, access: LinearAccess) -> list[int]:
        """Return where each point's element is, from that of the first on."""
        return [
            sum(step * index for step, index in zip(access.steps, self.lane(n), strict=True))
            for n in range(self.width)
        ]

    def alignment(self, access: LinearAccess, most: int) -> int:
        """Return a number of elements, up to `most`, that divides the begins of all boxes."""
        parts = zip(access.steps, self.counts, self.extents, strict=True)
        moves = [step * count for step, count, extent in parts if count < extent]
        return gcd(most, access.offset, *moves)

    def is_dense(self, access: LinearAccess) -> bool:
        """Return whether the points follow each other in memory, each box aligned to its size."""
        in_order = self.offsets(access) == list(range(self.width))
        return in_order and self.alignment(access, self.width) == self.width

    def last(self, access: LinearAccess) -> int:
        """Return the last element of all whole boxes."""
        parts = zip(access.steps, self.counts, self.extents, strict=True)
        ends = (step * (extent // count * count - 1) for step, count, extent in parts)
        return access.offset + sum(ends)

    def piece(self, access: LinearAccess, most: int, size: int) -> int:
        """Return how many elements, up to `most`, are read at once: a power of 2.

        At least half of the elements read are used, and no read goes beyond the memory's `size`.
        With pieces of 1, each element is read for itself.
        """
        offsets = set(self.offsets(access))
        piece = self.alignment(access, most)
        while piece > 1:
            read = len({offset // piece for offset in offsets}) * piece
            within = (self.last(access) // piece + 1) * piece <= size
            if min(offsets) >= 0 and within and read <= 2 * len(offsets):
                break
            piece //= 2
        return piece
