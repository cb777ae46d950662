"""The strategy assignment problem: one strategy per node, pairwise costs, optional memory limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
"""Costs per strategy, shape ``(strategies,)``; ``inf`` forbids a strategy."""

Matrix = npt.NDArray[np.float64]
"""Costs per pair of strategies, shape ``(strategies of u, strategies of v)``."""

Integers = npt.NDArray[np.int64]


class InfeasibleAssignment(Exception):  # noqa: N818 - an outcome that callers name, as in "infeasible"
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
        """How many nodes choose a strategy."""
        return len(self.node_costs)

    def is_integral(self) -> bool:
        """Whether all finite costs are integers, so that every bound may be rounded up."""
        return all(_integral(costs) for costs in (*self.node_costs, *self.edge_costs))


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


def _integral(costs: npt.NDArray[np.float64]) -> bool:
    finite = costs[np.isfinite(costs)]
    return bool(np.all(finite == np.rint(finite)))


@dataclass
class ProblemBuilder:
    """Collects nodes and edges, checks them, and builds a `StrategyProblem`.

    Example: ``b = ProblemBuilder(); u = b.add_node([1, 2]); v = b.add_node([0, 0]);
    b.add_edge(u, v, [[0, inf], [inf, 0]]); problem = b.build()``.
    """

    _node_costs: list[Vector] = field(default_factory=list[Vector])
    _usages: list[Integers] = field(default_factory=list[Integers])
    _intervals: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    _edges: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    _edge_costs: list[Matrix] = field(default_factory=list[Matrix])

    def add_node(
        self,
        costs: npt.ArrayLike,
        *,
        usage: npt.ArrayLike | None = None,
        live: tuple[int, int] = (0, 0),
    ) -> int:
        """Add a node and return its index.

        Args:
            costs: cost per strategy (at least one), ``inf`` where forbidden.
            usage: non-negative integers per strategy; zero where not given.
            live: half-open range of times during which the usage counts.

        Raises:
            ValueError: an empty or multi-dimensional array, NaN or ``-inf``, a negative or
                fractional usage, a negative or reversed interval.
        """
        node = len(self._node_costs)
        array = _checked_costs(costs, 1, f"node {node}")
        if array.size == 0:
            raise ValueError(f"node {node} has no strategy to choose from")
        self._node_costs.append(array)
        self._usages.append(_checked_usage(usage, array.size, node))
        if not 0 <= live[0] <= live[1]:
            raise ValueError(f"node {node} is live over {live}, which is not a range of times")
        self._intervals.append(live)
        return node

    def add_edge(self, u: int, v: int, costs: npt.ArrayLike) -> None:
        """Add ``costs[s, t]`` for strategy s of `u` and t of `v`; ``u == v`` adds the diagonal.

        Raises:
            ValueError: an unknown node, a matrix of the wrong shape, NaN or ``-inf``.
        """
        for node in (u, v):
            if not 0 <= node < len(self._node_costs):
                raise ValueError(f"edge ({u}, {v}) names node {node}, which does not exist")
        array = _checked_costs(costs, 2, f"edge ({u}, {v})")
        expected = (self._node_costs[u].size, self._node_costs[v].size)
        if array.shape != expected:
            raise ValueError(f"edge ({u}, {v}) has shape {array.shape}; expected {expected}")
        if u == v:
            self._node_costs[u] = _frozen(self._node_costs[u] + np.diagonal(array))
            return
        self._edges.append((u, v))
        self._edge_costs.append(array)

    def build(self, *, memory_limit: int | None = None) -> StrategyProblem:
        """Return the problem; usages are dropped when there is no `memory_limit`."""
        memory = None
        if memory_limit is not None:
            intervals = np.array(self._intervals, dtype=np.int64).reshape(-1, 2)
            memory = MemoryLimit(tuple(self._usages), _frozen(intervals), memory_limit)
        edges = np.array(self._edges, dtype=np.int64).reshape(-1, 2)
        return StrategyProblem(
            tuple(self._node_costs), _frozen(edges), tuple(self._edge_costs), memory
        )


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def _checked_costs(costs: npt.ArrayLike, dims: int, what: str) -> npt.NDArray[np.float64]:
    array = np.array(costs, dtype=np.float64)
    if array.ndim != dims:
        raise ValueError(f"costs of {what} have {array.ndim} dimensions; expected {dims}")
    if bool(np.isnan(array).any()) or bool((array == -np.inf).any()):
        raise ValueError(f"costs of {what} contain NaN or -inf; only numbers and +inf are costs")
    return _frozen(array)


def _checked_usage(usage: npt.ArrayLike | None, size: int, node: int) -> Integers:
    if usage is None:
        return _frozen(np.zeros(size, dtype=np.int64))
    raw = np.asarray(usage)
    array = raw.astype(np.int64)
    if array.shape != (size,) or bool((array != raw).any()) or bool((array < 0).any()):
        raise ValueError(f"usage of node {node} must be {size} non-negative integers")
    return _frozen(array)
