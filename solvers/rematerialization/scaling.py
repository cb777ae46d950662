"""Exact or safely rounded integers for CP-SAT."""

from dataclasses import dataclass
from functools import reduce
from math import floor, gcd

from braid.solvers.rematerialization.problem import Problem

_FINE = 10**12
"""Sum of the scaled durations when they are not integers to begin with."""


@dataclass(frozen=True)
class Scale:
    """Durations and bytes of a problem as small integers.

    Bytes are divided by their common divisor, so feasibility is unchanged. Durations are exact
    when all are integers; otherwise they are rounded down, which keeps lower bounds valid.
    """

    durations: tuple[int, ...]
    tick: float
    sizes: tuple[int, ...]
    workspaces: tuple[int, ...]
    capacity: int

    @classmethod
    def of(cls, problem: Problem, budget: int) -> "Scale":
        """Scale `problem` for a budget in bytes; what the graph inputs take is subtracted."""
        unit = reduce(gcd, problem.sizes + tuple(op.workspace for op in problem.ops), 0) or 1
        times = [op.duration for op in problem.ops]
        if all(float(time).is_integer() for time in times):
            whole = reduce(gcd, (int(time) for time in times), 0) or 1
            durations, tick = tuple(int(time) // whole for time in times), float(whole)
        else:
            tick = sum(times) / _FINE
            durations = tuple(floor(time / tick) for time in times)
        return cls(
            durations,
            tick,
            tuple(size // unit for size in problem.sizes),
            tuple(op.workspace // unit for op in problem.ops),
            (budget - problem.pinned_bytes) // unit,
        )

    def bound(self, problem: Problem, ticks: float) -> float:
        """Return the duration in the problem's unit that `ticks` of scaled duration prove.

        Every required op runs at least once, so only what exceeds that was rounded.
        """
        base = sum(self.durations[op] for op in problem.required)
        return problem.base_duration + max(0.0, ticks - base) * self.tick
