"""Memories that are written word by word and read in another order: banks, addresses, loops.

Word w is in bank w modulo the number of banks, at address w divided by it. So consecutive words can
be read in one cycle, as a transposed matrix needs it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

MOST_LOOPS = 6
"""The most loops of a sequence; a sequence with more is not treated as a nest."""


@dataclass(frozen=True)
class Reads:
    """The reads of each pass: `addresses[pass, bank]`, and for each lane that it gives the lane
    `lanes[pass, i]` of the word of bank `banks[pass, i]`.
    """

    addresses: Integers
    banks: Integers
    lanes: Integers


def fewest_passes(order: Integers, words: int, beat: int, banks: int) -> int:
    """Return the fewest passes for a beat of `beat` elements, of a memory of `words` words in
    `banks` banks.

    `order` has the place of each number that is read among those that were written. Each pass
    gives as many numbers, next to each other, and reads one word of each bank.
    """
    return next(
        passes
        for passes in range(1, beat + 1)
        if beat % passes == 0 and not _conflicts(order, words, beat // passes, banks)
    )


def _conflicts(order: Integers, words: int, group: int, banks: int) -> bool:
    """Return whether this many numbers next to each other need two words of a bank."""
    word = (order // (order.size // words)).reshape(-1, group)
    passes = np.arange(len(word))[:, None]
    needed = np.unique(passes * words + word)
    return np.unique(needed // words * banks + needed % words % banks).size < needed.size


def reads_of(order: Integers, words: int, beat: int, banks: int, passes: int) -> Reads:
    """Return the reads of an order without conflicts; banks that a pass does not need read any
    address.
    """
    width = order.size // words
    word, lane = order // width, order % width
    word, lane = (one.reshape(-1, beat // passes) for one in (word, lane))
    # The address of what is needed first, so that banks that are not needed share it.
    addresses = np.repeat(word[:, :1] // banks, banks, axis=1)
    np.put_along_axis(addresses, word % banks, word // banks, axis=1)
    return Reads(addresses, word % banks, lane)


@dataclass(frozen=True)
class Loops:
    """Numbers as a nest of loops, the last innermost: `start` + the sum of index times stride."""

    start: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def values(self) -> Integers:
        """All numbers, in their order."""
        made = np.full(1, self.start, np.int64)
        for extent, stride in zip(self.extents, self.strides, strict=True):
            made = (made[:, None] + np.arange(extent) * stride).ravel()
        return made


def loops_of(numbers: Integers) -> Loops | None:
    """Return the nest with these indices; None if it has more than `MOST_LOOPS` loops."""
    extents: list[int] = []
    strides: list[int] = []
    left = numbers
    while left.size > 1:
        if len(extents) == MOST_LOOPS:
            return None
        stride = int(left[1] - left[0])
        steps = np.flatnonzero(np.diff(left) != stride)
        run = int(steps[0]) + 1 if steps.size else left.size
        extent = next((one for one in range(run, 1, -1) if _repeats(left, one, stride)), 0)
        if not extent:
            return None
        extents.insert(0, extent)
        strides.insert(0, stride)
        left = left[::extent]
    return Loops(int(left[0]), tuple(extents), tuple(strides))


def _repeats(numbers: Integers, extent: int, stride: int) -> bool:
    """Return whether each this many numbers follow each other by this stride."""
    if numbers.size % extent:
        return False
    rows = numbers.reshape(-1, extent)
    return bool((rows == rows[:, :1] + np.arange(extent) * stride).all())
