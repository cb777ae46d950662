"""Decide which of two things that were measured in turns is faster."""

import math
import statistics
from collections.abc import Sequence

from braid.tuning.search import LEAST_GAIN

TURNS, MOST_TURNS = 7, 35
"""The least number of turns before one of two is called faster, and the most turns if one seems to
be."""


def is_faster(
    times: Sequence[float], than: Sequence[float], least_gain: float = LEAST_GAIN
) -> bool:
    """Return whether times are shorter, turn by turn, by more than the noise of these quotients.

    Effects that last longer than a turn, such as the clock rate or other load, slow both
    measurements of a turn, and are no noise in their ratio.
    """
    quotients = ratios(times, than)
    if len(quotients) < TURNS:
        return False
    return statistics.median(quotients) < 1 - max(least_gain, noise(quotients))


def noise(quotients: Sequence[float]) -> float:
    """Return the spread of times in as few turns as there are at least.

    It falls with the square root of the number of turns, as for a median.
    """
    low, _, high = statistics.quantiles(quotients, n=4)
    return (high - low) * math.sqrt(TURNS / len(quotients))


def is_open(times: Sequence[float], than: Sequence[float]) -> bool:
    """Return whether times seem to be shorter, and more turns may show it."""
    return ratio(times, than) < 1 - LEAST_GAIN and not is_faster(times, than)


def ratio(times: Sequence[float], than: Sequence[float]) -> float:
    """Return the median of all turns."""
    return statistics.median(ratios(times, than) or [1.0])


def ratios(times: Sequence[float], than: Sequence[float]) -> list[float]:
    """Return the quotients of both times turn by turn, as far as both have them."""
    pairs = zip(times, than, strict=False)
    return [one / other for one, other in pairs if other > 0]
