"""Jobs with heads and tails on one machine."""

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf

Job = tuple[float, float, float]
"""Head, duration and tail."""


def one_machine_bound(jobs: Sequence[Job]) -> float:
    """Return the makespan of `jobs` on one machine with preemption.

    Jackson's schedule: at any time, of the jobs whose head has passed, that of the longest tail
    runs.
    """
    pending = sorted(jobs)
    available: list[tuple[float, float]] = []
    now, bound, index = 0.0, 0.0, 0
    while index < len(pending) or available:
        if not available:
            now = max(now, pending[index][0])
        while index < len(pending) and pending[index][0] <= now:
            heappush(available, (-pending[index][2], pending[index][1]))
            index += 1
        tail, duration = heappop(available)
        arrival = pending[index][0] if index < len(pending) else inf
        if now + duration <= arrival:
            now += duration
            bound = max(bound, now - tail)
        else:
            heappush(available, (tail, duration - (arrival - now)))
            now = arrival
    return bound
