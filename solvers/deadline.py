"""Stop a solver in time: one object for the whole solver, checked in every loop that may take
long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from time import monotonic


class OutOfTime(Exception):
    """Raised where a step that cannot be used in part runs into its deadline."""


def _now() -> float:
    return monotonic()


class Work:
    """A clock that goes by work, so that a search ends at the same step wherever it runs.

    Its seconds are what counted steps take on a usual machine. Even so, the time is over after
    `at_most` seconds of `time.monotonic`.
    """

    def __init__(self, at_most: float) -> None:
        self._spent, self._end = 0.0, monotonic() + at_most

    def __call__(self) -> float:
        """Return the seconds that have been spent."""
        return self._spent if self.left > 0 else inf

    @property
    def left(self) -> float:
        """Seconds of `time.monotonic` until there is no time left in any case."""
        return self._end - monotonic()

    def spend(self, seconds: float) -> None:
        """Go on by the seconds that a step takes."""
        self._spent += seconds


PATIENCE = 10.0
"""The most seconds of `time.monotonic` that a search by work takes, per second of its limit."""


@dataclass(frozen=True)
class Deadline:
    """A moment `at` on a clock: `time.monotonic`, or one that counts work.

    Building a model, reducing a problem or constructing an answer call `check` in their loops;
    whoever began them catches `OutOfTime` and goes on with the best answer so far.
    """

    at: float = inf
    clock: Callable[[], float] = _now

    @staticmethod
    def after(seconds: float) -> Deadline:
        """Return the deadline that many seconds from now."""
        return Deadline(monotonic() + seconds)

    @staticmethod
    def by_work(seconds: float) -> Deadline:
        """Return the deadline after this many seconds of a new clock that goes by work."""
        return Deadline(seconds, Work(PATIENCE * seconds))

    def spend(self, seconds: float) -> None:
        """Report the cost of a step, which advances a clock that counts work."""
        if isinstance(self.clock, Work):
            self.clock.spend(seconds)

    @property
    def patience(self) -> float:
        """Return the seconds of `time.monotonic` that are left in any case."""
        return self.clock.left if isinstance(self.clock, Work) else self.remaining

    @property
    def remaining(self) -> float:
        """Seconds left, negative when it has passed."""
        return self.at - self.clock()

    @property
    def passed(self) -> bool:
        """Return whether no time is left."""
        return self.clock() >= self.at

    def check(self) -> None:
        """Raise OutOfTime when no time is left."""
        if self.passed:
            raise OutOfTime

    def share(self, part: float) -> Deadline:
        """Return the deadline of a step that may take `part` of what is left."""
        if self.at == inf:
            return self
        now = min(self.clock(), self.at)
        return replace(self, at=now + part * (self.at - now))

    def later_by(self, seconds: float) -> Deadline:
        """Return the deadline that many seconds after this one."""
        return replace(self, at=self.at + seconds)

    def earlier(self, other: Deadline) -> Deadline:
        """Return the earlier one of two."""
        return self if self.at <= other.at else other


NEVER = Deadline()
