"""How many iterations compute an output: the fastest choice within a number of multipliers.

A stage that computes g groups of channels in p parts of their sums takes g · p iterations for an
output and 1 / (g · p) of the multipliers. The slowest stage is what an image takes in a stream of
images, so the answer is the least number of iterations that all stages reach within the budget: it
is found by bisection over the numbers that occur, and is the optimum of that choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.dialects.braid_hls.stage import Loops, Pair
from braid.support.errors import BraidError


@dataclass(frozen=True)
class Work:
    """Of a stage: `channels` of a beat, `terms` of a sum, and its loops without folds.

    Multipliers are needed for each term if `multiplies`, and `per_channel` beside.
    """

    loops: Loops
    channels: int
    terms: int
    multiplies: bool
    per_channel: int

    def iterations(self, folds: Pair) -> int:
        """Of one image."""
        rows, columns = self.loops.outputs
        return self.loops.positions + rows * columns * (folds[0] * folds[1] - 1)

    def multipliers(self, folds: Pair) -> int:
        """That work in each cycle."""
        channels, terms = self.channels // folds[0], self.terms // folds[1]
        return channels * (terms * self.multiplies + self.per_channel)

    def choices(self) -> list[Pair]:
        """All folds that divide."""
        return [
            (groups, parts)
            for groups in _divisors(self.channels)
            for parts in _divisors(self.terms)
        ]


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


@dataclass(frozen=True)
class Folding:
    """Folds of each stage; `iterations` of the slowest, and `multipliers` of all."""

    folds: tuple[Pair, ...]
    iterations: int
    multipliers: int


def fastest_folding(works: Sequence[Work], multipliers: int) -> Folding:
    """The folds with which the slowest stage has the fewest iterations.

    Raises BraidError where each stage needs more than `multipliers` even at its slowest.
    """
    choices = [work.choices() for work in works]

    def cheapest(limit: int) -> list[Pair] | None:
        picked: list[Pair] = []
        for work, folds in zip(works, choices, strict=True):
            fitting = [one for one in folds if work.iterations(one) <= limit]
            if not fitting:
                return None
            # Of as many multipliers: the fewest lanes, and then groups rather than parts.
            picked.append(
                min(fitting, key=lambda one: (work.multipliers(one), -one[0] * one[1], -one[0]))
            )
        return picked

    def used(folds: Sequence[Pair]) -> int:
        return sum(work.multipliers(one) for work, one in zip(works, folds, strict=True))

    limits = sorted(
        {work.iterations(one) for work, folds in zip(works, choices, strict=True) for one in folds}
    )
    slowest = cheapest(limits[-1])
    assert slowest is not None
    if used(slowest) > multipliers:
        raise BraidError(
            f"the stages need {used(slowest)} multipliers at their slowest, expected at most "
            f"{multipliers}",
            hint="give multipliers=N, or split the model over several devices",
        )
    low, high = 0, len(limits) - 1
    while low < high:
        middle = (low + high) // 2
        folds = cheapest(limits[middle])
        if folds is not None and used(folds) <= multipliers:
            high = middle
        else:
            low = middle + 1
    best = cheapest(limits[high])
    assert best is not None
    return Folding(tuple(best), limits[high], used(best))
