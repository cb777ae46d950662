"""Building a strategy problem, with every input checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.solvers.strategy.problem import (
    Integers,
    Matrix,
    MemoryLimit,
    StrategyProblem,
    Vector,
)


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
    array = np.asarray(costs, dtype=np.float64)
    if array.flags.writeable:  # read-only arrays are shared, not copied
        array = array.copy()
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
