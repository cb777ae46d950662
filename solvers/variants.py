"""Choose which variants of a program are worth their cost.

A variant saves time in the part of all runs that it is for, and costs bytes and time to compile.
Variants for different sizes run in different runs, so that what they save adds up: a knapsack with
two capacities. It is solved exactly, by branch and bound; the bound of the remaining ones is the
smaller of two fractional knapsacks, with one capacity each (Dantzig: "Discrete-Variable Extremum
Problems", Operations Research 5, 1957).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

MOST_CANDIDATES = 24
"""Candidates that are compared: the time may double with each."""


@dataclass(frozen=True)
class Variant:
    """The saving of a variant, in mean seconds a run over all runs, and its cost."""

    gain: float
    bytes: float
    compile_seconds: float


@dataclass(frozen=True)
class Budget:
    """The most that all variants together may take."""

    bytes: float
    compile_seconds: float


def choose_variants(variants: Sequence[Variant], budget: Budget) -> tuple[int, ...]:
    """Return the numbers of the variants that save most within a budget, in rising order.

    A variant that saves nothing is never chosen. Raises ValueError for more than `MOST_CANDIDATES`,
    and for negative costs.
    """
    if len(variants) > MOST_CANDIDATES:
        raise ValueError(f"there are {len(variants)} variants, expected at most {MOST_CANDIDATES}")
    if any(min(each.bytes, each.compile_seconds) < 0 for each in variants):
        raise ValueError("a variant has negative costs")
    useful = [number for number, each in enumerate(variants) if each.gain > 0]
    order = sorted(useful, key=lambda number: -variants[number].gain)
    search = _Search([variants[number] for number in order])
    search.descend(0, 0.0, budget.bytes, budget.compile_seconds, ())
    return tuple(sorted(order[place] for place in search.best))


class _Search:
    """A search depth first, in which the variants that save most come first."""

    def __init__(self, variants: Sequence[Variant]) -> None:
        self._variants = variants
        self._gain = 0.0
        self.best: tuple[int, ...] = ()
        places = range(len(variants))
        self._by_bytes = sorted(places, key=partial(self._density, "bytes"))
        self._by_seconds = sorted(places, key=partial(self._density, "compile_seconds"))

    def descend(
        self,
        place: int,
        gain: float,
        bytes_left: float,
        seconds_left: float,
        chosen: tuple[int, ...],
    ) -> None:
        """Try the variants from `place` on; those before it are `chosen` or rejected."""
        if gain > self._gain:
            self._gain, self.best = gain, chosen
        if place == len(self._variants):
            return
        most = min(
            self._fractional("bytes", self._by_bytes, place, bytes_left),
            self._fractional("compile_seconds", self._by_seconds, place, seconds_left),
        )
        if gain + most <= self._gain:
            return
        own = self._variants[place]
        if own.bytes <= bytes_left and own.compile_seconds <= seconds_left:
            self.descend(
                place + 1,
                gain + own.gain,
                bytes_left - own.bytes,
                seconds_left - own.compile_seconds,
                (*chosen, place),
            )
        self.descend(place + 1, gain, bytes_left, seconds_left, chosen)

    def _density(self, cost: str, place: int) -> float:
        """Return the key by which variants that save most by their cost come first."""
        own = self._variants[place]
        return getattr(own, cost) / own.gain

    def _fractional(self, cost: str, order: Sequence[int], first: int, capacity: float) -> float:
        """Return the saving of the variants from `first` on if fractions of them may be chosen."""
        gain = 0.0
        for place in order:
            if place < first:
                continue
            own = self._variants[place]
            taken: float = getattr(own, cost)
            if taken > capacity:
                return gain + own.gain * capacity / taken
            capacity -= taken
            gain += own.gain
        return gain
