"""Limit the numbers that are added one by one, and cut longer sums into parts, without IR.

A sum of n rounded additions is wrong by n half units in the last place at worst, and by a fourth of
that where all numbers are the same: a sum of 4 million tenths by 4 %. With partial sums, only the
length of a part and the number of parts count (Higham, "The Accuracy of Floating Point Summation",
SIAM J. Sci. Comput. 1993).
"""

from collections.abc import Sequence

from braid.support.sizes.expression import Extent

LONGEST = 4096
"""Numbers that are added one by one: equal ones in f32 then give errors of 5e-5, random ones
between 0 and 1 of 1e-6."""

_PART = 2048
"""The most numbers of a part of a longer sum: errors are 3e-5, and 1e-6 for random numbers."""

OF_PART = 16
"""Numbers that the sum of a part counts for where parts are added up, which are few then: 256 of
them add 4e-6 to the error."""


def is_long(steps: int, added: int) -> bool:
    """Return whether a loop of this many steps, each with `added` numbers, is done in parts."""
    return steps * added > LONGEST


def part_steps(steps: int, added: int) -> int:
    """Return how many of these steps are a part: all parts but the last have as many."""
    parts = -(-steps // max(1, _PART // added))
    return -(-steps // parts)


def additions_of(extents: Sequence[Extent]) -> int:
    """Return the number of sequential additions to the outermost sum of loops with these
    extents."""
    added = 1
    for extent in reversed(extents):
        if not isinstance(extent, int):
            return LONGEST
        steps = extent
        while is_long(steps, added):
            steps, added = -(-steps // part_steps(steps, added)), OF_PART
        added *= steps
    return added
