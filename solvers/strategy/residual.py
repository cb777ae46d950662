"""Keep the residual problem while reductions are applied, and the way back to its assignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from braid.solvers.strategy.problem import (
    InfeasibleAssignment,
    Integers,
    Matrix,
    StrategyProblem,
    Vector,
)

EXACT = 1e-12
"""Relative difference below which two float costs are the same number."""


class AppliedReduction(Protocol):
    """One applied reduction, which can extend an assignment of the residual to the eliminated
    nodes."""

    def complete(self, choice: Integers) -> None:
        """Fill in the strategies that this reduction decided; `choice` is updated in place."""
        ...


@dataclass(frozen=True)
class Restricted:
    """`node` kept only the strategies `kept` (indices before the restriction)."""

    node: int
    kept: Integers

    def complete(self, choice: Integers) -> None:
        """Translate the index among the kept strategies back."""
        choice[self.node] = self.kept[choice[self.node]]


@dataclass(frozen=True)
class Eliminated:
    """`node` takes ``best[strategies of scope]``; `scope` may be empty."""

    node: int
    scope: tuple[int, ...]
    best: Integers

    def complete(self, choice: Integers) -> None:
        """Look the strategy of the node up in the table."""
        choice[self.node] = self.best[tuple(choice[other] for other in self.scope)]


@dataclass(frozen=True)
class Load:
    """Usage of memory rows ``start <= row < end``, per strategy of the node that carries it."""

    start: int
    end: int
    usage: Vector


@dataclass
class Residual:
    """A mutable strategy problem without parallel edges.

    Attributes:
        costs: per live node, cost per strategy; empty for eliminated nodes.
        neighbours: ``neighbours[u][v]`` has shape ``(strategies of u, strategies of v)``;
            ``neighbours[v][u]`` is its transpose (a view).
        loads: per node, its contributions to the memory rows.
        capacity: per memory row, what the loads may add up to.
        times: per memory row, its time.
        constant: the cost of settled decisions.
        alive: nodes that still choose.
        steps: the applied reductions, in order.
        integral: all costs of the original problem are integers.
    """

    costs: list[Vector]
    neighbours: list[dict[int, Matrix]]
    loads: list[list[Load]]
    capacity: Vector
    times: Integers
    integral: bool
    constant: float = 0.0
    alive: set[int] = field(default_factory=set[int])
    steps: list[AppliedReduction] = field(default_factory=list[AppliedReduction])

    @staticmethod
    def of(problem: StrategyProblem) -> Residual:
        """Copy `problem`, adding parallel edges up; one memory row per time."""
        n = problem.num_nodes
        residual = Residual(
            costs=[costs.copy() for costs in problem.node_costs],
            neighbours=[{} for _ in range(n)],
            loads=[[] for _ in range(n)],
            capacity=np.zeros(0),
            times=np.zeros(0, dtype=np.int64),
            integral=problem.is_integral(),
            alive=set(range(n)),
        )
        for (u, v), costs in zip(problem.edges.tolist(), problem.edge_costs, strict=True):
            residual.add_edge(u, v, costs)
        if problem.memory is not None:
            residual.capacity = np.full(
                int(problem.memory.intervals.max(initial=0)), float(problem.memory.limit)
            )
            residual.times = np.arange(residual.capacity.size)
            spans = problem.memory.intervals.tolist()
            for node, (usage, (start, end)) in enumerate(
                zip(problem.memory.usages, spans, strict=True)
            ):
                if start < end and usage.any():
                    residual.loads[node].append(Load(start, end, usage.astype(np.float64)))
            if problem.memory.limit < 0:
                raise InfeasibleAssignment(f"the memory limit {problem.memory.limit} is negative")
        return residual

    def add_edge(self, u: int, v: int, costs: Matrix) -> None:
        """Add `costs` to the edge between `u` and `v`, creating it if there is none."""
        known = self.neighbours[u].get(v)
        self.set_edge(u, v, costs if known is None else known + costs)

    def set_edge(self, u: int, v: int, costs: Matrix) -> None:
        """Replace the edge between `u` and `v`."""
        self.neighbours[u][v] = costs
        self.neighbours[v][u] = costs.T

    def remove_edge(self, u: int, v: int) -> None:
        """Remove the edge between `u` and `v`."""
        del self.neighbours[u][v]
        del self.neighbours[v][u]

    def restrict(self, node: int, kept: Integers) -> None:
        """Keep only the strategies `kept` of `node` (ascending indices).

        Raises:
            InfeasibleAssignment: nothing is kept.
        """
        if kept.size == 0:
            raise InfeasibleAssignment(
                f"every strategy of node {node} is forbidden by its costs, its neighbours'"
                " choices, or the memory limit"
            )
        self.steps.append(Restricted(node, kept))
        self.costs[node] = self.costs[node][kept]
        for other, costs in list(self.neighbours[node].items()):
            self.set_edge(node, other, costs[kept])
        self.loads[node] = [
            Load(load.start, load.end, load.usage[kept]) for load in self.loads[node]
        ]

    def eliminate(self, node: int, scope: tuple[int, ...], best: Integers) -> None:
        """Record that `node` is decided by its `scope` and drop it with its edges."""
        self.steps.append(Eliminated(node, scope, best))
        for other in self.neighbours[node]:
            del self.neighbours[other][node]
        self.neighbours[node] = {}
        self.costs[node] = np.zeros(0)
        self.loads[node] = []
        self.alive.discard(node)

    def complete(self, choice: Integers) -> Integers:
        """Return the assignment of the original problem.

        Args:
            choice: shape ``(nodes,)``; entries of nodes that are not alive are ignored.
        """
        full = choice.copy()
        for step in reversed(self.steps):
            step.complete(full)
        return full

    def cost_of(self, choice: Integers) -> float:
        """Return the cost of one strategy per live node; ``inf`` where infeasible."""
        total = self.constant
        for node in self.alive:
            total += float(self.costs[node][choice[node]])
            for other, costs in self.neighbours[node].items():
                if node < other:
                    total += float(costs[choice[node], choice[other]])
        return total if (self.slack_of(choice) >= 0).all() else float("inf")

    def magnitude_of(self, choice: Integers) -> float:
        """Return the sum of the absolute values that `cost_of` adds up."""
        total = abs(self.constant)
        for node in self.alive:
            total += abs(float(self.costs[node][choice[node]]))
            for other, costs in self.neighbours[node].items():
                if node < other:
                    total += abs(float(costs[choice[node], choice[other]]))
        return total

    def edges_among(self, nodes: Sequence[int]) -> list[tuple[int, int, Matrix]]:
        """Return each edge once: the places of its ends in `nodes`, and its costs."""
        place = {node: k for k, node in enumerate(nodes)}
        return [
            (place[u], place[v], costs)
            for u in nodes
            for v, costs in self.neighbours[u].items()
            if u < v
        ]

    def slack_of(self, choice: Integers) -> Vector:
        """Return what `choice` leaves of the capacity of every memory row."""
        change = np.zeros(self.capacity.size + 1)
        for node in self.alive:
            for load in self.loads[node]:
                used = load.usage[choice[node]]
                change[load.start] += used
                change[load.end] -= used
        return self.capacity - np.cumsum(change)[:-1]

    def cells(self) -> int:
        """Return the number of node and edge costs left: the size of what is still open."""
        edges = sum(m.size for node in self.alive for m in self.neighbours[node].values()) // 2
        return edges + sum(self.costs[node].size for node in self.alive)

    def fresh_copy(self) -> Residual:
        """Return an independent residual that starts here: its steps are empty.

        Arrays are shared, because they are replaced and never modified.
        """
        return Residual(
            list(self.costs),
            [dict(edges) for edges in self.neighbours],
            [list(loads) for loads in self.loads],
            self.capacity,
            self.times,
            self.integral,
            self.constant,
            set(self.alive),
        )
