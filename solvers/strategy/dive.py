"""Depth-first rounding with propagation: a feasible assignment guided by reparametrized costs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.strategy.dual import DualAscent
from braid.solvers.strategy.problem import Integers, Matrix, Vector
from braid.solvers.strategy.residual import Load, Residual

_Mask = npt.NDArray[np.bool_]


def dive(
    residual: Residual,
    dual: DualAscent,
    *,
    order: list[int] | None = None,
    failures: int = 200,
    deadline: Deadline = NEVER,
) -> Integers | None:
    """Return a feasible choice per node of `residual`, or None when the search gives up.

    Nodes are decided one by one for the strategy that looks cheapest next to the decided
    neighbours; forbidden pairs and memory rows remove strategies elsewhere at once.

    Args:
        residual: the problem that `dual` was made from.
        dual: guides by its node and edge costs (prices included).
        order: positions in `dual.nodes` in the order of decision; ascending by default.
        failures: dead ends after which to give up.
        deadline: when to give up.
    """
    state = _Domains(residual, dual)
    sequence = order if order is not None else list(range(len(dual.nodes)))
    if not state.keep_possible() or not _decide(state, sequence, failures, deadline):
        return None
    choice = np.zeros(len(residual.costs), dtype=np.int64)
    choice[dual.nodes] = [int(mask.argmax()) for mask in state.masks]
    return choice


def _decide(state: _Domains, sequence: list[int], failures: int, deadline: Deadline) -> bool:
    """Fix every position in turn; a failed strategy is removed where it was tried."""
    marks: list[tuple[int, int, int]] = []
    depth = 0
    while depth < len(sequence):
        if depth % 64 == 0 and deadline.passed:
            return False
        k = sequence[depth]
        strategy = int(state.scores(k).argmin())
        marks.append((depth, strategy, state.mark()))
        if state.fix(k, strategy):
            depth += 1
            continue
        while True:
            failures -= 1
            if failures < 0 or not marks or deadline.passed:
                return False
            depth, strategy, mark = marks.pop()
            state.undo(mark)
            if state.forbid(sequence[depth], strategy):
                break
    return True


class _Domains:
    """Strategies still possible per position, kept consistent, with undo."""

    def __init__(self, residual: Residual, dual: DualAscent) -> None:
        self._costs = dual.costs
        self.masks: list[_Mask] = [np.ones(costs.size, dtype=bool) for costs in dual.costs]
        self._around: list[list[tuple[int, Matrix, _Mask | None]]] = [[] for _ in dual.nodes]
        for u, v, costs in dual.edges:
            finite = np.isfinite(costs)
            hard = None if finite.all() else finite
            self._around[u].append((v, costs, hard))
            self._around[v].append((u, costs.T, None if hard is None else hard.T))
        self._loads: list[list[Load]] = [residual.loads[node] for node in dual.nodes]
        self._slack = residual.capacity.copy()
        for load in (load for loads in self._loads for load in loads):
            self._slack[load.start : load.end] -= load.usage.min()
        self._trail: list[tuple[int, _Mask]] = []

    def keep_possible(self) -> bool:
        """Remove what costs ``inf``; return False at a contradiction, or where memory is short."""
        if self._slack.min(initial=0.0) < 0:
            return False
        if not all(self._narrow(k, np.isfinite(costs)) for k, costs in enumerate(self._costs)):
            return False
        return all(
            hard is None or self._narrow(other, np.asarray(hard[self.masks[k]].any(axis=0)))
            for k, around in enumerate(self._around)
            for other, _, hard in around
        )

    def mark(self) -> int:
        """Return a point to undo to."""
        return len(self._trail)

    def undo(self, mark: int) -> None:
        """Restore the domains at `mark`."""
        while len(self._trail) > mark:
            k, mask = self._trail.pop()
            self._charge(k, self.masks[k], mask)
            self.masks[k] = mask

    def scores(self, k: int) -> Vector:
        """Return the cost of every strategy at `k` beside the best answers of its neighbours."""
        score = np.where(self.masks[k], self._costs[k], np.inf)
        for other, costs, _ in self._around[k]:
            mask = self.masks[other]
            score += costs[:, mask].min(axis=1) if not mask.all() else costs.min(axis=1)
        return np.where(self.masks[k], score, np.inf)

    def fix(self, k: int, strategy: int) -> bool:
        """Leave `k` a single strategy; return False at a contradiction."""
        mask = np.zeros(self.masks[k].size, dtype=bool)
        mask[strategy] = self.masks[k][strategy]
        return self._narrow(k, mask)

    def forbid(self, k: int, strategy: int) -> bool:
        """Remove a strategy of `k`; return False at a contradiction."""
        mask = self.masks[k].copy()
        mask[strategy] = False
        return self._narrow(k, mask)

    def _narrow(self, k: int, mask: _Mask) -> bool:
        """Set a smaller domain and propagate it."""
        pending: list[tuple[int, _Mask]] = [(k, mask)]
        while pending:
            k, wanted = pending.pop()
            mask = np.logical_and(wanted, self.masks[k])
            if not mask.any():
                return False
            if (mask == self.masks[k]).all():
                continue
            self._trail.append((k, self.masks[k]))
            before, self.masks[k] = self.masks[k], mask
            if not self._charge(k, before, mask):
                return False
            for other, _, hard in self._around[k]:
                if hard is not None:
                    partners: _Mask = np.asarray(hard[mask].any(axis=0))
                    if (self.masks[other] & ~partners).any():
                        pending.append((other, partners))
        return True

    def _charge(self, k: int, before: _Mask, after: _Mask) -> bool:
        """Move the least usage of `k` from that under `before` to that under `after`."""
        fits = True
        for load in self._loads[k]:
            change = load.usage[after].min() - load.usage[before].min()
            if change:
                self._slack[load.start : load.end] -= change
                fits &= bool(self._slack[load.start : load.end].min() >= 0)
        return fits
