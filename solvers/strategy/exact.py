"""What reductions and bounds leave over, as a CP-SAT model."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, log2

import numpy as np
from ortools.sat.python import cp_model

from braid.solvers.strategy.problem import Integers, Matrix
from braid.solvers.strategy.residual import Residual

_SCALED_BITS = 40
"""Bits of the scaled objective when costs are not integers."""


@dataclass(frozen=True)
class ExactResult:
    """Outcome of a CP-SAT search over a residual problem.

    Attributes:
        choice: per node of the residual, or None when no assignment was found.
        bound: lower bound; ``inf`` when it is proven that no assignment exists.
    """

    choice: Integers | None
    bound: float


def solve_exactly(
    residual: Residual,
    *,
    seconds: float,
    workers: int,
    seed: int,
    hint: Integers | None = None,
) -> ExactResult:
    """Search the residual problem with CP-SAT.

    Costs are rounded down to multiples of a unit (1 when all are integers), so that the bound
    holds for the true costs.

    Args:
        residual: not changed.
        seconds: time limit.
        workers: threads.
        seed: CP-SAT's random seed.
        hint: an assignment to start from.
    """
    unit = _unit(residual)
    encoder = _Encoder(residual, unit)
    if hint is not None:
        encoder.add_hint(hint)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(seconds, 0.01)
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    solver.parameters.linearization_level = 2
    status = solver.solve(encoder.model)
    if status == cp_model.INFEASIBLE:
        return ExactResult(None, inf)
    bound = residual.constant + solver.best_objective_bound * unit
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return ExactResult(None, bound if np.isfinite(bound) else -inf)
    choice = np.zeros(len(residual.costs), dtype=np.int64)
    for node, literals in encoder.picks.items():
        choice[node] = next(s for s, x in enumerate(literals) if solver.boolean_value(x))
    return ExactResult(choice, bound)


def _unit(residual: Residual) -> float:
    """Return the cost of one unit of the integer objective."""
    if residual.integral:
        return 1.0
    largest = 0.0
    for node in residual.alive:
        for costs in (residual.costs[node], *residual.neighbours[node].values()):
            finite = costs[np.isfinite(costs)]
            largest = max(largest, float(np.abs(finite).max(initial=0.0)))
    terms = 2 * len(residual.alive) + 1
    return 2.0 ** (floor(log2(largest * terms)) + 1 - _SCALED_BITS) if largest else 1.0


class _Encoder:
    """Booleans per strategy, and per pair of strategies where the pair has a cost."""

    def __init__(self, residual: Residual, unit: float) -> None:
        self.model = cp_model.CpModel()
        self._unit = unit
        self._terms: list[tuple[cp_model.IntVar, int]] = []
        self.picks: dict[int, list[cp_model.IntVar]] = {}
        for node in sorted(residual.alive):
            self._add_node(node, residual)
        for node in sorted(residual.alive):
            for other, costs in residual.neighbours[node].items():
                if node < other:
                    self._add_edge(self.picks[node], self.picks[other], costs)
        self._add_rows(residual)
        variables = [variable for variable, _ in self._terms]
        weights = [weight for _, weight in self._terms]
        self.model.minimize(cp_model.LinearExpr.weighted_sum(variables, weights))

    def add_hint(self, choice: Integers) -> None:
        """Suggest `choice`."""
        for node, literals in self.picks.items():
            for s, literal in enumerate(literals):
                self.model.add_hint(literal, s == choice[node])

    def _add_node(self, node: int, residual: Residual) -> None:
        costs = residual.costs[node]
        literals = [self.model.new_bool_var("") for _ in range(costs.size)]
        self.picks[node] = literals
        self.model.add_exactly_one(literals)
        for literal, cost in zip(literals, costs.tolist(), strict=True):
            self._add_cost(literal, cost)

    def _add_cost(self, literal: cp_model.IntVar, cost: float) -> None:
        if cost == inf:
            self.model.add(literal == 0)
        elif floor(cost / self._unit):
            self._terms.append((literal, floor(cost / self._unit)))

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
        for s, t in zip(*(axis.tolist() for axis in np.nonzero(finite)), strict=True):
            pair = self.model.new_bool_var("")
            by_row[s].append(pair)
            by_column[t].append(pair)
            self._add_cost(pair, float(costs[s, t]))
        for pick, pairs in zip([*rows, *columns], [*by_row, *by_column], strict=True):
            self.model.add(cp_model.LinearExpr.sum(pairs) == pick)

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
            self.model.add(cp_model.LinearExpr.weighted_sum(variables, weights) <= int(capacity))
