"""When to stop: one object for a whole solver, looked at in every loop that may take long."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import monotonic


class OutOfTime(Exception):
    """Raised where a step that cannot be used in part runs into its deadline."""


@dataclass(frozen=True)
class Deadline:
    """A moment `at` on the clock of `time.monotonic`.

    Building a model, reducing a problem or constructing an answer call `check` in their loops;
    whoever began them catches `OutOfTime` and goes on with the best answer so far.
    """

    at: float = inf

    @staticmethod
    def after(seconds: float) -> Deadline:
        """Return the deadline that many seconds from now."""
        return Deadline(monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """Seconds left, negative when it has passed."""
        return self.at - monotonic()

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return monotonic() >= self.at

    def check(self) -> None:
        """Raise OutOfTime when no time is left."""
        if self.passed:
            raise OutOfTime

    def share(self, part: float) -> Deadline:
        """Return the deadline of a step that may take `part` of what is left."""
        now = monotonic()
        return Deadline(now + part * max(self.at - now, 0.0)) if self.at < inf else self

    def later_by(self, seconds: float) -> Deadline:
        """Return the deadline that many seconds after this one."""
        return Deadline(self.at + seconds)

    def earlier(self, other: Deadline) -> Deadline:
        """Return the earlier one of two."""
        return self if self.at <= other.at else other


NEVER = Deadline()
