"""Describe a cost, and the source from which it comes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Source(StrEnum):
    """The source that knew a figure.

    `CORRECTED` costs are predictions, by a family or the roofline, times the ratio of measured to
    predicted times of other ops of their kind. `UNKNOWN` ones count as 0: the resource has no
    costs.
    """

    DECLARED = "declared"
    MEASURED = "measured"
    CORRECTED = "corrected"
    FAMILY = "family"
    ROOFLINE = "roofline"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Cost:
    """One run: seconds, bytes moved, scalar operations, and declared uses of other resources.

    `source` knew the seconds; `family` makes the kernel, empty where none does. With `started`, the
    seconds include the start of the kernel, as declared times and profiled ones do.
    """

    seconds: float
    bytes: int
    flops: int
    source: Source
    declared: Mapping[str, float] = field(default_factory=dict[str, float])
    family: str = ""
    started: bool = False

    def amount(self, resource: str) -> float | None:
        """Return how much of `seconds`, `bytes`, `flops`, or of what is declared; None if
        unknown.
        """
        if resource == "seconds":
            return self.seconds
        known = {"bytes": float(self.bytes), "flops": float(self.flops)}
        return {**known, **self.declared}.get(resource)


def tally(counts: Mapping[Source, int]) -> str:
    """Return text such as `12 declared, 3 measured, 40 family, 2 roofline`, without what is 0."""
    return ", ".join(f"{counts[s]} {s}" for s in Source if counts.get(s)) or "none"
