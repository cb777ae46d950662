"""Schedules of candidates, as tests name them."""

from dataclasses import MISSING, fields
from typing import Any

from braid.targets.kernels.kernel_family import Candidate, Kernel
from braid.targets.kernels.schedules import Entries, Schedule


def schedule_of(candidate: Candidate[Any], named: Schedule | Entries | None = None) -> Schedule:
    """Return the schedule of these entries; a field without a value has the candidate's."""
    default = next(candidate.space(0))
    if isinstance(named, Schedule):
        return named
    if not named:
        return default
    needed = {field.name for field in fields(default) if field.default is MISSING}
    rest = {name: value for name, value in default.entries.items() if name in needed}
    return type(default).read({**rest, **named})


def emitted(
    candidate: Candidate[Any], named: Schedule | Entries | None = None, symbol: str = "kernel"
) -> Kernel:
    """Return the kernel with this schedule."""
    return candidate.emit(symbol, schedule_of(candidate, named))
