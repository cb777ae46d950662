"""Windows of images along one dim, and the zeros around the images that they read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WindowDim:
    """Element t of the window at position p is number p · stride + t · dilation along a dim.

    Those before `begin` and from `end` on are zeros. There are `size` elements and `positions`.
    """

    positions: int
    size: int
    stride: int
    dilation: int
    begin: int
    end: int

    @property
    def reaches_end(self) -> bool:
        """Return whether a window has elements from `end` on."""
        last = (self.positions - 1) * self.stride + (self.size - 1) * self.dilation
        return last >= self.end

    @property
    def share(self) -> float:
        """Return the part of all products that are not with zeros."""
        inside = sum(len(self.positions_of(element)) for element in range(self.size))
        return inside / (self.size * self.positions)

    def positions_of(self, element: int) -> range:
        """Return where this element of the windows lies in the image."""
        ahead = element * self.dilation
        first, behind = (-((ahead - side) // self.stride) for side in (self.begin, self.end))
        return range(max(first, 0), max(min(behind, self.positions), first, 0))
