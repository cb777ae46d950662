"""Memories whose bytes hold the number of what was written there last."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from braid.support.errors import UnsupportedError

Tags = npt.NDArray[np.int32]

NOTHING = 0
"""The tag that no value has: memory has it before anything is written, and where paths differ."""


@dataclass(frozen=True)
class Place:
    """The place of a tensor: `size` bytes from `begin` of a space on.

    With `strides` in bytes it has only some of its elements: `shape` elements in their grid.
    """

    space: str
    begin: int
    size: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] | None = None

    @property
    def end(self) -> int:
        """The byte after the last one."""
        return self.begin + self.size

    def begins_with(self, other: "Place") -> bool:
        """Return whether both begin at the same byte."""
        return (self.space, self.begin) == (other.space, other.begin)


class Memory:
    """The tags of all spaces that programs write, one for each `granule` of bytes.

    Raises UnsupportedError if there is not enough memory for the tags.
    """

    def __init__(self, sizes: dict[str, int], granule: int) -> None:
        self.granule = granule
        self.tags = {space: _tags(size, granule) for space, size in sizes.items()}

    def cells(self, place: Place) -> Tags:
        """Return the tags of a place, to be read or written."""
        tags, granule = self.tags[place.space], self.granule
        begin = place.begin // granule
        if place.strides is None:
            return tags[begin : -(-place.end // granule)]
        steps = [stride // granule * tags.itemsize for stride in place.strides]
        return np.lib.stride_tricks.as_strided(tags[begin:], place.shape, steps)

    def overlap(self, first: Place, second: Place) -> bool:
        """Return whether two places have a byte in common."""
        apart = first.end <= second.begin or second.end <= first.begin
        if first.space != second.space or apart:
            return False
        if first.strides is None and second.strides is None:
            return True
        probe = Memory({first.space: max(first.end, second.end)}, self.granule)
        probe.cells(first)[...] = 1
        return bool(probe.cells(second).any())

    def overlap_but(
        self, first: tuple[Place, Sequence[Place]], second: tuple[Place, Sequence[Place]]
    ) -> bool:
        """Return whether two places of one space have a byte in common, without those listed with
        each.
        """
        used: list[Tags] = []
        for place, kept in (first, second):
            probe = Memory({place.space: max(first[0].end, second[0].end)}, self.granule)
            probe.cells(place)[...] = 1
            for each in kept:
                probe.cells(each)[...] = 0
            used.append(probe.tags[place.space])
        return bool((used[0] & used[1]).any())

    def copy(self) -> "Memory":
        """Return a copy of the tags, which then changes independently."""
        other = Memory({}, self.granule)
        other.tags = {space: tags.copy() for space, tags in self.tags.items()}
        return other

    def meet(self, other: "Memory") -> None:
        """Keep the facts that are the same on another path that leads here."""
        for space, tags in self.tags.items():
            tags[tags != other.tags[space]] = NOTHING


def _tags(size: int, granule: int) -> Tags:
    count = -(-size // granule)
    try:
        return np.zeros(count, np.int32)
    except (MemoryError, ValueError) as error:  # numpy raises the latter beyond 2^63 bytes
        raise UnsupportedError(
            f"out of memory: the tags of a plan of {size} bytes, which verify it, are {4 * count} "
            "bytes",
            hint="compile without verifying decisions",
        ) from error
