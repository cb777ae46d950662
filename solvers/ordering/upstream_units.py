"""Bound the work that a unit can have done by some time, since another unit must feed it first.

Ops of one unit wait for jobs of an upstream unit, such as loads: by any time, only those ops can
have run whose jobs fit into the time since the first of these jobs could start. The most work of
such ops is a knapsack whose items share their weights. Relaxing its one row by Lagrange leaves a
selection problem (J. Rhys, "A selection problem of shared fixed costs and network flows",
Management Science 1970), whose dual lets the ops pay for these jobs: each way to pay is a bound.
The remaining work then runs sequentially, before the least of the tails. So this is the bound of S.
Johnson's two machines ("Optimal two- and three-stage production schedules", Naval Research
Logistics 1954) for jobs that share operations of the first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from braid.solvers.ordering.job_graph import Job

LIMITS = 16
"""Tails from which on ops, and heads from which on upstream jobs count: the best of each."""
TRIES = 64
"""Knapsacks that are bounded for each two units."""
STEPS = 10
"""Golden-section steps to the best multiplier."""
GOLDEN = 0.618

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Side:
    """Jobs of one unit: the earliest start, duration, and least time from end to the end of all."""

    heads: Floats
    seconds: Floats
    tails: Floats

    @property
    def jobs(self) -> list[Job]:
        """The jobs one by one."""
        rows: list[list[float]] = [self.heads.tolist(), self.seconds.tolist(), self.tails.tolist()]
        return list(zip(*rows, strict=True))


@dataclass(frozen=True)
class _Trial:
    """Ops of tails from `tail` on, upstream jobs of heads from `start` on, looked at to `until`.

    The bound is at most `hope`.
    """

    hope: float
    tail: float
    start: float
    until: float


def upstream_unit_bound(ops: Side, upstream: Side, waits: Flags, known: float) -> float:
    """Return a bound on the makespan, or `known` if none found is greater.

    `waits` says for each op (row) for which upstream jobs it waits.
    """
    best = known
    trials = sorted(_trials(ops, upstream, waits, known), key=lambda trial: -trial.hope)
    for trial in trials[:TRIES]:
        if trial.hope > best:
            best = max(best, _bound(ops, upstream, waits, trial))
    return best


def _trials(ops: Side, upstream: Side, waits: Flags, known: float) -> Iterator[_Trial]:
    starts = _promising(upstream.heads, upstream.seconds)
    for tail in _promising(ops.tails, ops.seconds):
        late = ops.tails >= tail
        heads, seconds = ops.heads[late], ops.seconds[late]
        times = np.unique(heads)
        done = np.clip(times[:, None] - heads, 0.0, seconds)
        needs = waits[late]
        needed = np.where(needs, heads[:, None], inf).min(axis=0) < times[:, None]
        for start in starts:
            later = upstream.heads >= start
            fed = needs[:, later].any(axis=1)
            costs = needed @ np.where(later, upstream.seconds, 0.0)
            budgets = times - start
            share = np.ones(len(times))
            np.divide(budgets, costs, out=share, where=(costs > budgets) & (budgets > 0))
            hopes = times + tail + seconds.sum() - done @ ~fed - share * (done @ fed)
            for place in np.flatnonzero((hopes > known) & (budgets > 0)):
                yield _Trial(float(hopes[place]), tail, start, float(times[place]))


def _promising(values: Floats, seconds: Floats) -> list[float]:
    """Return the values for which the sum of the value and of the work of all that have no less is
    largest.
    """
    order = np.argsort(-values, kind="stable")
    ends = values[order] + np.cumsum(seconds[order])
    best = dict[float, float]()
    for value, end in zip(values[order].tolist(), ends.tolist(), strict=True):
        best[value] = end
    return sorted(best, key=best.__getitem__, reverse=True)[:LIMITS]


def _bound(ops: Side, upstream: Side, waits: Flags, trial: _Trial) -> float:
    late = ops.tails >= trial.tail
    can = late & (ops.heads < trial.until)
    feed = (upstream.heads >= trial.start) & (upstream.heads < trial.until)
    work = np.minimum(ops.seconds[can], trial.until - ops.heads[can])
    needs = waits[np.ix_(can, feed)]
    fed = needs.any(axis=1)
    total = trial.until + trial.tail + float(ops.seconds[late].sum() - work[~fed].sum())
    budget = trial.until - trial.start
    return total - _most_work(work[fed], needs[fed], upstream.seconds[feed], budget)


def _most_work(work: Floats, needs: Flags, costs: Floats, budget: float) -> float:
    """Return a bound on the work of any ops whose shared `needs` cost no more than `budget`."""
    least, low, high = float(work.sum()), 0.0, 1.0
    for _ in range(STEPS):
        step = GOLDEN * (high - low)
        left, right = (
            m * budget + _brought(work, needs, m * costs) for m in (high - step, low + step)
        )
        least = min(least, left, right)
        low, high = (low, low + step) if left < right else (high - step, high)
    return least


def _brought(work: Floats, needs: Flags, costs: Floats) -> float:
    """Return a bound on the work of any ops less the `costs` of what they need.

    The least needs are served first within the elapsed time; the work of the remaining ops gives a
    bound.
    """
    left = costs.copy()
    brought = 0.0
    for op in np.argsort(needs.sum(axis=1), kind="stable"):
        own = needs[op]
        paid = min(float(work[op]), float(left[own].sum()))
        if paid:
            left[own] *= 1.0 - paid / float(left[own].sum())
        brought += float(work[op]) - paid
    return brought
