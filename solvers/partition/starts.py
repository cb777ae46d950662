"""Assignments of groups to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations

import numpy as np

from braid.solvers.partition.groups import Groups
from braid.solvers.partition.problem import Objective

_ORDERS = 6
_HALVINGS = 12
"""The halvings of the range in which the load of the busiest device is sought."""


def starts(groups: Groups) -> Iterator[list[int]]:
    """Return assignments that need not fit the memories: each group where it is fastest, and
    pipelines.
    """
    yield first_fit(groups)
    if groups.problem.objective is Objective.THROUGHPUT:
        devices = range(groups.problem.single)
        for order in islice(permutations(devices), _ORDERS):
            yield _pipeline(groups, order)


def first_fit(groups: Groups) -> list[int]:
    """Return groups assigned to the device that runs them fastest, as long as it has memory
    left."""
    left = groups.problem.capacity.astype(float).copy()
    device = [0] * groups.count
    for group in np.argsort(-groups.bytes, kind="stable").tolist():
        seconds = groups.seconds[group]
        fitting = np.where(left >= groups.bytes[group], seconds, np.inf)
        chosen = int(np.argmin(fitting if np.isfinite(fitting).any() else seconds))
        device[group] = chosen
        left[chosen] -= groups.bytes[group]
    return device


def _pipeline(groups: Groups, order: Sequence[int]) -> list[int]:
    """Return one stretch of the topological order for each device, the longest as short as
    can be.
    """
    rows = groups.seconds.tolist()
    high = float(sum(min(row) for row in rows)) * 2
    low, best = high / 2 / len(order), _filled(groups, rows, order, high)[0]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        device, fits = _filled(groups, rows, order, middle)
        if fits:
            best, high = device, middle
        else:
            low = middle
    return best


def _filled(
    groups: Groups, rows: Sequence[Sequence[float]], order: Sequence[int], limit: float
) -> tuple[list[int], bool]:
    """Fill devices one after the other up to `limit` seconds, and return whether that was enough.

    An op that a device does not run is put where it is fastest.
    """
    inf = float("inf")
    device = [-1] * groups.count
    loads = [0.0] * groups.problem.devices
    place = 0
    for group in groups.of:
        if device[group] >= 0:
            continue
        row = rows[group]
        while (
            place + 1 < len(order)
            and row[order[place]] < inf
            and loads[order[place]] + row[order[place]] > limit
        ):
            place += 1
        chosen = order[place]
        if row[chosen] == inf:
            chosen = min(range(len(row)), key=lambda k: row[k])
        device[group] = chosen
        loads[chosen] += row[chosen]
    return device, max(loads) <= limit
