"""The strategy assignment problem: one strategy per node, pairwise costs, optional memory limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
"""Costs per strategy, shape ``(strategies,)``; ``inf`` forbids a strategy."""

Matrix = npt.NDArray[np.float64]
"""Costs per pair of strategies, shape ``(strategies of u, strategies of v)``."""

Integers = npt.NDArray[np.int64]


class InfeasibleAssignment(Exception):
    """No assignment satisfies the forbidden pairs and the memory limit; the message says why."""


@dataclass(frozen=True)
class MemoryLimit:
    """At every time, the usages of the nodes that are live add up to at most `limit`.

    Attributes:
        usages: per node, non-negative usage per strategy, shape ``(strategies,)``.
        intervals: shape ``(nodes, 2)``; node i is live at the times ``start <= t < end``.
        limit: largest total usage at any time, in the unit of `usages`.
    """

    usages: tuple[Integers, ...]
    intervals: Integers
    limit: int


@dataclass(frozen=True)
class StrategyProblem:
    """Minimize the node costs plus the edge costs of the chosen strategies (a PBQP).

    Build one with `ProblemBuilder`. Parallel edges are allowed and add up.

    Attributes:
        node_costs: per node, cost per strategy, shape ``(strategies,)``.
        edges: shape ``(edges, 2)``, the two distinct nodes of every edge.
        edge_costs: per edge, shape ``(strategies of edges[e, 0], strategies of edges[e, 1])``.
        memory: what the live nodes may use together, or None.
    """

    node_costs: tuple[Vector, ...]
    edges: Integers
    edge_costs: tuple[Matrix, ...]
    memory: MemoryLimit | None = None

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes, each of which chooses a strategy."""
        return len(self.node_costs)

    def is_integral(self) -> bool:
        """Return whether all finite costs are integers, so that every bound may be rounded up."""
        return all(are_integral(costs) for costs in (*self.node_costs, *self.edge_costs))


def evaluate(problem: StrategyProblem, assignment: Sequence[int] | Integers) -> float:
    """Return the cost of `assignment`: ``inf`` where a pair is forbidden or memory overflows.

    Raises:
        ValueError: `assignment` does not have one strategy in range for every node.
    """
    choice = np.asarray(assignment, dtype=np.int64)
    sizes = np.array([len(costs) for costs in problem.node_costs], dtype=np.int64)
    if choice.shape != sizes.shape or bool(np.any((choice < 0) | (choice >= sizes))):
        raise ValueError("an assignment has one strategy index in range for every node")
    total = sum(float(costs[s]) for costs, s in zip(problem.node_costs, choice, strict=True))
    for (u, v), costs in zip(problem.edges, problem.edge_costs, strict=True):
        total += float(costs[choice[u], choice[v]])
    if problem.memory is not None and peak_usage(problem.memory, choice) > problem.memory.limit:
        return float("inf")
    return total


def peak_usage(memory: MemoryLimit, choice: Integers) -> int:
    """Return the largest total usage of live nodes over time."""
    usage = np.array([u[s] for u, s in zip(memory.usages, choice, strict=True)], dtype=np.int64)
    return int(usage_over_time(memory.intervals, usage).max(initial=0))


def usage_over_time(intervals: Integers, usage: Integers) -> Integers:
    """Return the total usage at every time ``0 <= t < latest end``, given one usage per node."""
    horizon = int(intervals.max(initial=0))
    change = np.zeros(horizon + 1, dtype=np.int64)
    live = intervals[:, 0] < intervals[:, 1]
    np.add.at(change, intervals[live, 0], usage[live])
    np.subtract.at(change, intervals[live, 1], usage[live])
    return np.cumsum(change)[:-1]


def are_integral(costs: npt.NDArray[np.float64]) -> bool:
    """Return whether all finite `costs` are integers."""
    finite = costs[np.isfinite(costs)]
    return bool(np.all(finite == np.rint(finite)))
