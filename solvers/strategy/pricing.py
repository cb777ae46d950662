"""Ascend the dual bound: sweeps, and steps of the memory prices along smoothed subgradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from braid.solvers.deadline import Deadline
from braid.solvers.strategy.dual import DualAscent
from braid.solvers.strategy.problem import Vector

_PATIENCE = 15
"""Iterations without a better bound after which sweeping alone has converged."""
_WARM = 0.1
"""Share of the first step where prices are known already."""


@dataclass(frozen=True)
class Ascent:
    """Best bound seen, and the prices at which it was found."""

    bound: float
    prices: Vector


def ascend(
    dual: DualAscent, *, iterations: int, deadline: Deadline, target: float, tolerance: float
) -> Ascent:
    """Improve the bound of `dual`, leaving it at the best prices found.

    Args:
        dual: improved in place.
        iterations: most pairs of sweeps.
        deadline: when to stop.
        target: cost of a known assignment, or ``inf``.
        tolerance: gain per iteration below which sweeping has converged; at most a part in 10^5
            of the bound counts.
    """
    steps: _PriceSteps | None = None
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
        if steps is None and (idle > 3 or dual.prices.any()):  # the messages have settled
            steps = _PriceSteps(dual)
        if steps is not None:
            steps.step(improved=gain > 0)
    dual.reprice(best.prices)
    return Ascent(max(best.bound, _settle(dual, best.bound, deadline)), best.prices)


def _settle(dual: DualAscent, goal: float, deadline: Deadline) -> float:
    """Sweep until the messages fit the prices: those that are left over belong to later prices."""
    bound = dual.bound()
    for _ in range(_PATIENCE):
        if bound >= goal or deadline.passed:
            break
        dual.sweep(forward=True, deadline=deadline)
        dual.sweep(forward=False, deadline=deadline)
        bound = dual.bound()
    return bound


class _PriceSteps:
    """Steps whose length grows while the bound improves, and shrinks where it does not.

    The use of a row is averaged over the strategies of each node, with softmin weights of their
    costs: if strategies tie, a subgradient that picks one of them would oscillate. The step of
    every row is scaled by how large its excess has been, and follows an average, as in D. Kingma,
    J. Ba, "Adam: a method for stochastic optimization" (ICLR 2015).
    """

    _AVERAGE, _SPREAD = 0.9, 0.99

    def __init__(self, dual: DualAscent) -> None:
        self._dual = dual
        regrets = dual.regrets()
        positive = regrets[np.isfinite(regrets) & (regrets > 0)]
        regret = float(np.median(positive)) if positive.size else 1.0
        usage = float(np.mean(np.abs(dual.load_usage))) if dual.load_usage.size else 0.0
        share = 0.2 * (_WARM if dual.prices.any() else 1.0)
        self._temperature = share * regret
        self._length = share * regret / (usage or 1.0)
        self._mean = np.zeros(dual.capacity.size)
        self._square = np.zeros(dual.capacity.size)
        self._count = 0
        self._stalled = 0

    def step(self, *, improved: bool) -> None:
        """Move the prices along the averaged excess."""
        self._temperature *= 0.99
        self._stalled = 0 if improved else self._stalled + 1
        if improved:
            self._length *= 1.02
        elif self._stalled > 3:
            self._length *= 0.7
            self._temperature *= 0.7
            self._stalled = 0
        excess = self._dual.expected_excess(self._temperature)
        self._count += 1
        self._mean = self._AVERAGE * self._mean + (1 - self._AVERAGE) * excess
        self._square = self._SPREAD * self._square + (1 - self._SPREAD) * excess**2
        mean = self._mean / (1 - self._AVERAGE**self._count)
        spread = np.sqrt(self._square / (1 - self._SPREAD**self._count))
        change = self._length * mean / np.where(spread > 0, spread, 1.0)
        self._dual.reprice(np.maximum(0.0, self._dual.prices + change))
