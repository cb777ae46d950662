"""Ascend the dual bound: sweeps, and projected subgradient steps on the memory prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from braid.solvers.deadline import Deadline
from braid.solvers.strategy.dual import DualAscent
from braid.solvers.strategy.problem import Vector

_PATIENCE = 15
"""Iterations without a better bound after which the step shrinks."""


@dataclass(frozen=True)
class Ascent:
    """Best bound seen, and the prices at which it was found."""

    bound: float
    prices: Vector


def ascend(
    dual: DualAscent, *, iterations: int, deadline: Deadline, target: float, tolerance: float
) -> Ascent:
    """Improve the bound of `dual`, leaving it at the best prices found.

    Steps are Polyak's (towards `target`, an upper bound) along an average of subgradients, as in
    the volume algorithm of Barahona and Anbil (Math. Programming 87, 2000).

    Args:
        dual: improved in place.
        iterations: most pairs of sweeps.
        deadline: when to stop.
        target: cost of a known assignment, or ``inf``.
        tolerance: gain per iteration below which sweeping has converged; at most a part in 10^5
            of the bound counts.
    """
    steps = _PriceSteps(dual)
    best = Ascent(-np.inf, dual.prices)
    idle = 0
    for _ in range(iterations):
        dual.sweep(forward=True, deadline=deadline)
        dual.sweep(forward=False, deadline=deadline)
        bound = dual.bound()
        gain = bound - best.bound
        idle = 0 if gain > min(tolerance, 1e-5 * abs(bound)) else idle + 1
        if gain > 0:
            best = Ascent(bound, dual.prices)
        if deadline.passed or bound >= target or idle > 3 * _PATIENCE:
            break
        if idle > 3 and not dual.prices.size:
            break
        if idle > 3 or dual.prices.any():  # prices move only after the messages have settled
            steps.step(bound, best.bound, target, improved=idle == 0)
    dual.reprice(best.prices)
    return Ascent(max(best.bound, _settle(dual, best.bound, deadline)), best.prices)


def _settle(dual: DualAscent, goal: float, deadline: Deadline) -> float:
    """Sweep until the messages fit the prices: those left behind belong to later prices."""
    bound = dual.bound()
    for _ in range(_PATIENCE):
        if bound >= goal or deadline.passed:
            break
        dual.sweep(forward=True, deadline=deadline)
        dual.sweep(forward=False, deadline=deadline)
        bound = dual.bound()
    return bound


class _PriceSteps:
    """Subgradient steps whose length shrinks while the bound does not improve."""

    def __init__(self, dual: DualAscent) -> None:
        self._dual = dual
        self._scale = 0.3
        self._unit = float(dual.capacity.max(initial=1.0)) or 1.0
        self._direction = np.zeros(dual.capacity.size)
        self._stalled = 0

    def step(self, bound: float, best: float, target: float, *, improved: bool) -> None:
        """Move the prices along the averaged excess of the current choice."""
        self._stalled = 0 if improved else self._stalled + 1
        if self._stalled > _PATIENCE:
            self._scale *= 0.8
            self._stalled = 0
        dual = self._dual
        excess = dual.excess(dual.choice()) / self._unit
        self._direction = 0.7 * self._direction + 0.3 * excess
        direction = np.where((dual.prices <= 0) & (self._direction < 0), 0.0, self._direction)
        norm = float(direction @ direction)
        if norm < 1e-14:
            return
        goal = target if np.isfinite(target) else best + 0.1 * abs(best) + 1e-9
        length = self._scale * max(goal - bound, 0.0) / norm / self._unit
        dual.reprice(np.maximum(0.0, dual.prices + length * direction))
