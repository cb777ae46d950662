"""Blocks of a sequence of ops that repeat, whatever their names: the layers of a transformer."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_TIMES = 3
"""From how many equal neighbours on they are one block."""
_SHORTEST = 4
"""The fewest parts of a block: shorter patterns say nothing of how a model is built."""
_MOST_COMPARED = 50_000_000


@dataclass(frozen=True)
class Stretch:
    """The parts from `begin` on, which are `times` equal blocks of `period` parts each."""

    begin: int
    period: int
    times: int

    @property
    def end(self) -> int:
        """The first part after it."""
        return self.begin + self.period * self.times


def longest_stretch(keys: Sequence[Hashable], crossings: Sequence[int]) -> Stretch | None:
    """Return the stretch that takes most parts, of several the one of shortest blocks.

    Parts are equal where their keys are. `crossings` say of each part how many edges go across the
    boundary before it: blocks begin where that is least, as layers do. Returns None where nothing
    repeats.
    """
    numbers: dict[Hashable, int] = {}
    ids = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    best: tuple[int, int, int] | None = None
    most = _SHORTEST * LEAST_TIMES - 1
    for period in range(_SHORTEST, _longest_period(len(ids)) + 1):
        begin, length = _longest_run(ids[period:] == ids[:-period])
        length += period
        if length // period >= LEAST_TIMES and length // period * period > most:
            most = length // period * period
            best = begin, period, length
    if best is None:
        return None
    begin, period, length = best
    times = length // period
    shifts = range(length - times * period + 1)
    shift = min(shifts, key=lambda shift: sum(crossings[begin + shift :: period][:times]))
    return Stretch(begin + shift, period, times)


def _longest_period(count: int) -> int:
    """Return the longest period that is tried; of a long sequence, as many as there is time for."""
    return min(count // LEAST_TIMES, _MOST_COMPARED // max(count, 1))


def _longest_run(values: NDArray[np.bool_]) -> tuple[int, int]:
    """Return where the longest run of true values begins, and its length."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], values, [False])).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    if not len(begins):
        return 0, 0
    at = int(np.argmax(ends - begins))
    return int(begins[at]), int(ends[at] - begins[at])
