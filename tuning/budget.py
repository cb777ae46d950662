"""Limit how long kernels of a model are searched: each by its part of what all take together."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

Ps = ParamSpec("Ps")
R = TypeVar("R")

_ALL = 1e9
"""Seconds that are more than any budget."""
LEAST = 5.0
"""Seconds for each kernel at least: the time to compile its default and a few others."""


@dataclass
class PausedClock:
    """`clock`, which stops while the user is asked."""

    clock: Callable[[], float] = time.monotonic
    paused: float = 0.0

    def __call__(self) -> float:
        """Return the seconds so far, without those of asking."""
        return self.clock() - self.paused

    def end(self) -> None:
        """End every budget that began before now."""
        self.paused -= _ALL

    def while_asking(self, ask: Callable[Ps, R]) -> Callable[Ps, R]:
        """Run `ask`, whose time does not count."""

        def asked(*arguments: Ps.args, **named: Ps.kwargs) -> R:
            begin = self.clock()
            try:
                return ask(*arguments, **named)
            finally:
                self.paused += self.clock() - begin

        return asked


@dataclass
class Budget:
    """`seconds` by `clock`, from now on, for kernels that take so much of a run (`weights`).

    This many are searched `together`, each for as long.
    """

    weights: Sequence[float]
    seconds: float
    clock: Callable[[], float]
    together: int = 1
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = self.clock() + self.seconds

    def is_spent(self) -> bool:
        """Return whether all of it is."""
        return self.clock() > self.end

    def part(self, number: int) -> Callable[[], bool]:
        """Return whether what the kernel of this number may take is spent, counted from now.

        That is its share of the remaining time, so unused time of earlier kernels goes to later
        ones.
        """
        now = self.clock()
        weight, rest = self.weights[number], sum(self.weights[number:])
        part = self.together * (self.end - now) * (weight / rest if rest else 1.0)
        end = min(self.end, now + max(LEAST, part))
        return lambda: self.clock() > end
