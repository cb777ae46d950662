"""Large neighbourhood search: free some nodes of a feasible choice and optimize them exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from braid.solvers.deadline import Deadline
from braid.solvers.strategy.problem import Integers, are_integral
from braid.solvers.strategy.residual import Residual

_SECONDS = 2.0
"""Longest time for one neighbourhood."""

SubSolver = Callable[[Residual, Integers, Deadline], tuple[Integers, bool]]
"""Takes a small residual, its current choice and a deadline; returns a choice that is no worse, and
whether it is optimal."""


def subproblem(residual: Residual, nodes: list[int], choice: Integers) -> Residual:
    """Return the problem of choosing anew for `nodes` (renumbered) beside the fixed rest.

    Costs moved along an edge that was removed later may have left fractions at its two ends, which
    are integers only together.

    Args:
        residual: the whole problem.
        nodes: the nodes set free.
        choice: a feasible choice, per node of `residual`.
    """
    position = {node: k for k, node in enumerate(nodes)}
    sub = Residual(
        costs=[residual.costs[node] for node in nodes],
        neighbours=[{} for _ in nodes],
        loads=[list(residual.loads[node]) for node in nodes],
        capacity=residual.capacity,
        times=residual.times,
        integral=residual.integral,
        alive=set(range(len(nodes))),
    )
    for k, node in enumerate(nodes):
        for other, costs in residual.neighbours[node].items():
            if other not in position:
                sub.costs[k] = sub.costs[k] + costs[:, choice[other]]
            elif k < position[other]:
                sub.set_edge(k, position[other], costs)
    sub.integral &= all(
        are_integral(costs)
        for k in sub.alive
        for costs in (sub.costs[k], *sub.neighbours[k].values())
    )
    return sub


@dataclass
class NeighbourhoodSearch:
    """Improves a feasible choice of a residual problem in place.

    Attributes:
        residual: the problem.
        choice: per node of the residual; updated.
        cost: of `choice`; updated.
        rng: source of the neighbourhoods.
        size: nodes set free at once; adapts to what is solved to optimality in time.
    """

    residual: Residual
    choice: Integers
    cost: float
    rng: np.random.Generator
    size: int = 24

    def __post_init__(self) -> None:
        """Index what the neighbourhoods are drawn from."""
        self._nodes = sorted(self.residual.alive)
        self._slack = self.residual.slack_of(self.choice)
        self._by_row: list[list[int]] = [[] for _ in self.residual.capacity]
        if self.residual.capacity.size <= 20_000:
            for node in self._nodes:
                for load in self.residual.loads[node]:
                    for row in (load.start, load.end - 1):
                        self._by_row[row].append(node)

    def run(self, solve: SubSolver, *, deadline: Deadline, idle: int, goal: float) -> None:
        """Search until `deadline`, `idle` neighbourhoods in a row gain nothing, or `goal`."""
        failures = 0
        while failures < idle and not deadline.passed and self.cost > goal:
            nodes = self._tight_rows() if self.rng.random() < 0.5 else self._ball()
            before = self.cost
            optimal = self._reoptimize(nodes, solve, deadline)
            failures = 0 if self.cost < before else failures + 1
            if optimal and len(nodes) >= self.size:
                self.size = min(self.size + 1 + self.size // 16, len(self._nodes))
            elif not optimal:
                self.size = max(8, self.size - self.size // 4)

    def _reoptimize(self, nodes: list[int], solve: SubSolver, deadline: Deadline) -> bool:
        sub = subproblem(self.residual, nodes, self.choice)
        current = self.choice[nodes]
        sub.capacity = self._slack + (sub.capacity - sub.slack_of(current))
        before = sub.cost_of(current)
        found, optimal = solve(sub, current, deadline.earlier(Deadline.after(_SECONDS)))
        after = sub.cost_of(found)
        if after <= before:
            self._slack = sub.slack_of(found)
            self.choice[nodes] = found
            self.cost += after - before
        return optimal

    def _ball(self) -> list[int]:
        """Return the nodes around a random one, breadth first."""
        root = self._nodes[int(self.rng.integers(len(self._nodes)))]
        return self._grow([root])

    def _tight_rows(self) -> list[int]:
        """Return the nodes that share a memory row with little slack."""
        if not self._by_row:
            return self._ball()
        draws = self.rng.integers(len(self._by_row), size=4)
        row = int(draws[np.argmin(self._slack[draws] / (self.residual.capacity[draws] + 1))])
        members = self._by_row[row]
        if not members:
            return self._ball()
        picked = self.rng.permutation(len(members))[: max(1, self.size // 2)]
        return self._grow([members[k] for k in picked.tolist()])

    def _grow(self, roots: list[int]) -> list[int]:
        found = list(dict.fromkeys(roots))[: self.size]
        seen = set(found)
        for node in found:
            around = [v for v in self.residual.neighbours[node] if v not in seen]
            order: list[int] = self.rng.permutation(len(around)).tolist()
            for k in order:
                if len(found) >= self.size:
                    return sorted(found)
                seen.add(around[k])
                found.append(around[k])
        return sorted(found)
