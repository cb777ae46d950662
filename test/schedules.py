"""Schedules of candidates, as tests name them."""

from typing import Any

from braid.targets.kernels.kernel_family import Candidate, Kernel
from braid.targets.kernels.schedules import Entries, Schedule


def schedule_of(candidate: Candidate[Any], named: Schedule | Entries | None = None) -> Schedule:
    """The schedule of these entries, by default the candidate's default one."""
    default = next(candidate.space(0))
    if isinstance(named, Schedule):
        return named
    return type(default).read(named) if named else default


def emitted(
    candidate: Candidate[Any], named: Schedule | Entries | None = None, symbol: str = "kernel"
) -> Kernel:
    """The kernel by this schedule."""
    return candidate.emit(symbol, schedule_of(candidate, named))
