"""Solve what reductions and bounds leave over, as a CP-SAT model."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf

import numpy as np
from ortools.sat.python import cp_model

from braid.solvers.deadline import Deadline, OutOfTime
from braid.solvers.strategy.problem import Integers, Matrix
from braid.solvers.strategy.residual import Residual

_OBJECTIVE_BITS = 40
"""Most bits of the integer objective."""
_LONGEST = 1e8
"""Seconds beyond which CP-SAT is given no limit."""


@dataclass(frozen=True)
class ExactResult:
    """Outcome of a CP-SAT search over a residual problem.

    Attributes:
        choice: per node of the residual, or None when no assignment was found.
        bound: lower bound on assignments within the cutoff; it is ``inf`` if there is none.
    """

    choice: Integers | None
    bound: float


def solve_exactly(
    residual: Residual,
    *,
    deadline: Deadline,
    workers: int,
    seed: int,
    cutoff: float,
    tolerance: float,
) -> ExactResult:
    """Search the residual problem with CP-SAT.

    Costs are rounded down to multiples of a unit, so that the bound holds for the true costs.

    Args:
        residual: not changed.
        deadline: when to stop, building the model included.
        workers: threads.
        seed: CP-SAT's random seed.
        cutoff: only assignments that cost at most this are of interest; may be ``inf``.
        tolerance: error of the bound that does no harm.
    """
    problem, taken = _normalized(residual)
    if taken == inf or cutoff < taken:
        return ExactResult(None, inf)
    scale = _scale(problem, cutoff - taken, tolerance)
    try:
        encoder = _Encoder(problem, scale, deadline)
    except OutOfTime:
        return ExactResult(None, -inf)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = min(max(deadline.remaining, 0.01), _LONGEST)
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    solver.parameters.linearization_level = 2
    status = solver.solve(encoder.model)
    if status == cp_model.INFEASIBLE:
        return ExactResult(None, inf)
    bound = taken + solver.best_objective_bound * scale.unit
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return ExactResult(None, bound if np.isfinite(bound) else -inf)
    choice = np.zeros(len(residual.costs), dtype=np.int64)
    for node, literals in encoder.picks.items():
        choice[node] = next(s for s, x in enumerate(literals) if solver.boolean_value(x))
    return ExactResult(choice, bound)


@dataclass(frozen=True)
class _Scale:
    """The scale of costs as integers: multiples of `unit`, those beyond `largest` forbidden."""

    unit: float
    largest: float


def _normalized(residual: Residual) -> tuple[Residual, float]:
    """Return the problem with every node's and edge's least cost at zero, and the removed constant.

    That is ``inf`` where a node or an edge allows nothing.
    """
    problem, taken = residual.fresh_copy(), residual.constant
    for node in residual.alive:
        least = float(residual.costs[node].min())
        if least == inf:
            return problem, inf
        problem.costs[node] = residual.costs[node] - least
        taken += least
        for other, costs in residual.neighbours[node].items():
            if node < other:
                least = float(costs.min())
                if least == inf:
                    return problem, inf
                problem.set_edge(node, other, costs - least)
                taken += least
    return problem, taken


def _scale(problem: Residual, gap: float, tolerance: float) -> _Scale:
    """Choose a unit so that rounding down all terms loses less than a quarter of `tolerance`."""
    terms, highest = 1, 0.0
    for node in problem.alive:
        for costs in (problem.costs[node], *problem.neighbours[node].values()):
            terms += 1
            highest += float(costs[np.isfinite(costs)].max())
    largest = min(gap, highest)
    finest = max(largest, tolerance) / 2**_OBJECTIVE_BITS
    return _Scale(max(tolerance / (4 * terms), finest) or 1.0, largest)


def _weighted_sum(variables: list[cp_model.IntVar], weights: list[int]) -> cp_model.LinearExprT:
    return cp_model.LinearExpr.weighted_sum(variables, weights)  # pyright: ignore[reportUnknownMemberType]


class _Encoder:
    """Booleans per strategy, and per pair of strategies where the pair has a cost."""

    def __init__(self, residual: Residual, scale: _Scale, deadline: Deadline) -> None:
        """Build the model. Raises OutOfTime at `deadline`."""
        self.model = cp_model.CpModel()
        self._scale = scale
        self._terms: list[tuple[cp_model.IntVar, int]] = []
        self.picks: dict[int, list[cp_model.IntVar]] = {}
        for node in sorted(residual.alive):
            deadline.check()
            self._add_node(node, residual)
        for node in sorted(residual.alive):
            deadline.check()
            for other, costs in residual.neighbours[node].items():
                if node < other:
                    self._add_edge(self.picks[node], self.picks[other], costs)
        self._add_rows(residual)
        variables = [variable for variable, _ in self._terms]
        weights = [weight for _, weight in self._terms]
        total = _weighted_sum(variables, weights)
        self.model.add(total <= floor(scale.largest / scale.unit))
        self.model.minimize(total)

    def _add_node(self, node: int, residual: Residual) -> None:
        costs = residual.costs[node]
        literals = [self.model.new_bool_var("") for _ in range(costs.size)]
        self.picks[node] = literals
        self.model.add_exactly_one(literals)
        for literal, cost in zip(literals, costs.tolist(), strict=True):
            self._add_cost(literal, cost)

    def _add_cost(self, literal: cp_model.IntVar, cost: float) -> None:
        if cost > self._scale.largest:
            self.model.add(literal == 0)
        elif floor(cost / self._scale.unit):
            self._terms.append((literal, floor(cost / self._scale.unit)))

    def _add_edge(
        self, rows: list[cp_model.IntVar], columns: list[cp_model.IntVar], costs: Matrix
    ) -> None:
        finite = np.isfinite(costs)
        if not costs[finite].any():
            self._add_compatibility(rows, columns, finite)
            self._add_compatibility(columns, rows, finite.T)
            return
        by_row: list[list[cp_model.IntVar]] = [[] for _ in rows]
        by_column: list[list[cp_model.IntVar]] = [[] for _ in columns]
        pairs_allowed: list[list[int]] = np.argwhere(finite).tolist()
        for s, t in pairs_allowed:
            pair = self.model.new_bool_var("")
            by_row[s].append(pair)
            by_column[t].append(pair)
            self._add_cost(pair, float(costs[s, t]))
        for pick, pairs in zip([*rows, *columns], [*by_row, *by_column], strict=True):
            self.model.add(_weighted_sum(pairs, [1] * len(pairs)) == pick)

    def _add_compatibility(
        self, picks: list[cp_model.IntVar], others: list[cp_model.IntVar], allowed: np.ndarray
    ) -> None:
        for pick, partners in zip(picks, allowed, strict=True):
            if not partners.all():
                self.model.add_bool_or(
                    [pick.Not(), *(others[t] for t in np.flatnonzero(partners).tolist())]
                )

    def _add_rows(self, residual: Residual) -> None:
        rows: list[list[tuple[cp_model.IntVar, int]]] = [[] for _ in residual.capacity]
        for node, literals in self.picks.items():
            for load in residual.loads[node]:
                used = [(x, int(u)) for x, u in zip(literals, load.usage, strict=True) if u]
                for row in rows[load.start : load.end]:
                    row.extend(used)
        for row, capacity in zip(rows, residual.capacity.tolist(), strict=True):
            variables = [variable for variable, _ in row]
            weights = [weight for _, weight in row]
            self.model.add(_weighted_sum(variables, weights) <= int(capacity))
