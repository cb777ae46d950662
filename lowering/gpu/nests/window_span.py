"""Windows of neighbours that lie in one row of memory: their elements, each read once.

In channels-first pooling, neighbouring windows begin `lane_step` elements apart, and the elements
of a window, its taps, are `tap_step` apart. Their common span is read from the first to the last
element by the widest aligned accesses, and every neighbour takes its elements from registers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from braid.lowering.gpu.nests.wide_access import ACCESS_BYTES

_MOST_BYTES = 64
"""The most bytes of a span: more would be registers that hold little that is used."""
_LINE_BYTES = 128
_WARP = 32


@dataclass(frozen=True)
class WindowSpan:
    """The elements of `width` neighbours with `taps` each; an access has up to `piece`."""

    lane_step: int
    tap_step: int
    width: int
    taps: int
    piece: int

    @staticmethod
    def of(
        steps: tuple[int, int], width: int, taps: int, others: Sequence[int], bytes_each: int
    ) -> "WindowSpan | None":
        """Return the span for steps of lanes and taps; `others` are added to where a span begins.

        The result is None if the windows do not lie in one direction, or are too far apart.
        """
        lane_step, tap_step = steps
        if lane_step < 1 or tap_step < 1:
            return None
        aligned = gcd(ACCESS_BYTES // bytes_each, lane_step * width, *others)
        span = WindowSpan(lane_step, tap_step, width, taps, aligned)
        return span if span.extent * bytes_each <= _MOST_BYTES else None

    @property
    def extent(self) -> int:
        """Elements from the first to the last."""
        return self.place(self.width - 1, self.taps - 1) + 1

    def place(self, lane: int, tap: int) -> int:
        """Return the place of an element of a neighbour's window, from where the span begins."""
        return lane * self.lane_step + tap * self.tap_step

    def lines(self, bytes_each: int) -> float:
        """Return the cache lines that a warp's accesses touch, for each neighbour of a thread."""
        apart = self.lane_step * self.width * bytes_each
        return len(self.pieces()) * max(1.0, apart * _WARP / _LINE_BYTES) / self.width

    def pieces(self) -> list[tuple[int, int]]:
        """Return where accesses begin, and how many elements they have."""
        found: list[tuple[int, int]] = []
        start = 0
        while start < self.extent:
            size = gcd(self.piece, start)
            while size > self.extent - start:
                size //= 2
            found.append((start, size))
            start += size
        return found
