"""Memory rows: dropping those that cannot bind and strategies that cannot fit."""

from __future__ import annotations

import numpy as np

from braid.solvers.strategy.problem import InfeasibleAssignment, Integers, Vector
from braid.solvers.strategy.residual import Load, Residual


def tighten_rows(residual: Residual) -> set[int]:
    """Simplify the memory rows without losing a feasible assignment; return changed nodes.

    The least usage of every load is charged to the capacity, strategies that exceed what is left
    are dropped, and rows that cannot overflow, or that a neighbouring row implies, are removed.

    Raises:
        InfeasibleAssignment: even the least usages overflow a row.
    """
    changed: set[int] = set()
    while True:
        _charge_least(residual)
        if residual.capacity.min(initial=0.0) < 0:
            row = int(residual.capacity.argmin())
            raise InfeasibleAssignment(
                f"at time {residual.times[row]} even the least possible usage exceeds the memory"
                f" limit by {-residual.capacity[row]:g}"
            )
        dropped = _drop_oversized(residual)
        changed |= dropped
        if not dropped:
            break
    return changed | _keep_rows(residual, _binding(residual))


def _charge_least(residual: Residual) -> None:
    change = np.zeros(residual.capacity.size + 1)
    for node in residual.alive:
        for k, load in enumerate(residual.loads[node]):
            least = float(load.usage.min())
            if least:
                change[load.start] += least
                change[load.end] -= least
                residual.loads[node][k] = Load(load.start, load.end, load.usage - least)
    residual.capacity = residual.capacity - np.cumsum(change)[:-1]


def _drop_oversized(residual: Residual) -> set[int]:
    changed: set[int] = set()
    for node in sorted(residual.alive):
        for load in list(residual.loads[node]):
            fits = load.usage <= residual.capacity[load.start : load.end].min()
            if not fits.all():
                residual.restrict(node, np.flatnonzero(fits))
                changed.add(node)
                break
    return changed


def _binding(residual: Residual) -> Integers:
    """Return the rows that may overflow and that no neighbouring row implies, ascending."""
    rows = residual.capacity.size
    most, starts, ends = np.zeros(rows + 1), np.zeros(rows + 1, bool), np.zeros(rows + 1, bool)
    for node in residual.alive:
        for load in residual.loads[node]:
            most[load.start] += load.usage.max()
            most[load.end] -= load.usage.max()
            starts[load.start] = ends[load.end] = True
    candidates = np.cumsum(most)[:-1] > residual.capacity
    return _without_implied(candidates, residual.capacity, starts, ends)


def _without_implied(
    candidates: np.ndarray, capacity: Vector, starts: np.ndarray, ends: np.ndarray
) -> Integers:
    """Drop a row when a neighbour among the kept rows has all its loads and no more capacity."""
    kept: list[int] = []
    started, ended = np.cumsum(starts), np.cumsum(ends)
    for row in np.flatnonzero(candidates).tolist():
        while kept and ended[row] == ended[kept[-1]] and capacity[row] <= capacity[kept[-1]]:
            kept.pop()  # nothing ended in between: this row has every load of the last one
        nothing_new = bool(kept) and started[row] == started[kept[-1]]
        if not (nothing_new and capacity[kept[-1]] <= capacity[row]):
            kept.append(row)
    return np.array(kept, dtype=np.int64)


def _keep_rows(residual: Residual, rows: Integers) -> set[int]:
    """Renumber the loads to `rows` alone; return the nodes that no row sees any more."""
    position = np.searchsorted(rows, np.arange(residual.capacity.size + 1))
    freed: set[int] = set()
    for node in residual.alive:
        before = residual.loads[node]
        if not before:
            continue
        total: dict[tuple[int, int], Vector] = {}
        for load in before:
            span = (int(position[load.start]), int(position[load.end]))
            if span[0] < span[1] and load.usage.any():
                total[span] = total[span] + load.usage if span in total else load.usage
        residual.loads[node] = [Load(*span, usage) for span, usage in total.items()]
        if not residual.loads[node]:
            freed.add(node)
    residual.capacity = residual.capacity[rows]
    residual.times = residual.times[rows]
    return freed
