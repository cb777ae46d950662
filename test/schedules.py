"""Schedules of candidates, as tests name them."""

from typing import Any

from braid.targets.kernels.kernel_family import Candidate, Kernel
from braid.targets.kernels.schedules import Entries, Schedule


def schedule_of(candidate: Candidate[Any], named: Schedule | Entries | None = None) -> Schedule:
    """The schedule of these entries, with those of the candidate's default one for the rest."""
    default = next(candidate.space(0))
    if isinstance(named, Schedule):
        return named
    return type(default).read({**default.entries, **(named or {})})


def emitted(
    candidate: Candidate[Any], named: Schedule | Entries | None = None, symbol: str = "kernel"
) -> Kernel:
    """The kernel by this schedule."""
    return candidate.emit(symbol, schedule_of(candidate, named))
