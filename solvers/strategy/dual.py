"""Lower bounds by reparametrization: sequential tree-reweighted message passing and row prices.

Costs are moved between nodes and edges without changing the cost of any assignment; the sum of
all minima is then a lower bound (the dual of the local polytope LP). The moves are those of
TRW-S: Kolmogorov, "Convergent tree-reweighted message passing" (PAMI 2006). Memory rows enter by
Lagrangian relaxation with a non-negative price each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from braid.solvers.strategy.problem import Integers, Matrix, Vector
from braid.solvers.strategy.residual import Residual


@dataclass(frozen=True)
class _Node:
    """One node in sweep order: its costs (a view) and its edges to earlier and later nodes.

    Every edge matrix has the earlier node on axis 0.
    """

    costs: Vector
    earlier: list[Matrix]
    later: list[Matrix]
    share: float


class DualAscent:
    """A reparametrized copy of a residual problem whose bound only ever improves by sweeping.

    Attributes:
        nodes: the live nodes, ascending: the order of a forward sweep.
        edges: ``(position of earlier node, position of later node, costs)``.
        costs: per position, reparametrized node costs including prices (views of one array).
        beliefs: per position, what the node saw in the last sweep; its minimum is a good choice.
        prices: cost per unit of every memory row.
    """

    def __init__(self, residual: Residual, prices: Vector | None = None) -> None:
        """Copy the costs of `residual`; `prices` default to zero."""
        self.nodes = sorted(residual.alive)
        self.constant = residual.constant
        self.capacity = residual.capacity
        self.prices = np.zeros(residual.capacity.size)
        sizes = [residual.costs[node].size for node in self.nodes]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        self._flat = np.concatenate([residual.costs[node] for node in self.nodes] or [np.zeros(0)])
        self.costs = [
            self._flat[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]
        self.beliefs = list(self.costs)
        self._copy_edges(residual)
        self._copy_loads(residual)
        if prices is not None:
            self.reprice(prices)

    def _copy_edges(self, residual: Residual) -> None:
        position = {node: k for k, node in enumerate(self.nodes)}
        pairs = [
            (position[u], position[v], costs)
            for u in self.nodes
            for v, costs in residual.neighbours[u].items()
            if u < v
        ]
        spans = np.cumsum([0, *(costs.size for _, _, costs in pairs)], dtype=np.int64)
        self._edge_starts = spans[:-1]
        self._edge_flat = np.empty(int(spans[-1]))
        self.edges: list[tuple[int, int, Matrix]] = []
        earlier: list[list[Matrix]] = [[] for _ in self.nodes]
        later: list[list[Matrix]] = [[] for _ in self.nodes]
        for (u, v, costs), start in zip(pairs, spans.tolist(), strict=False):
            copy = self._edge_flat[start : start + costs.size].reshape(costs.shape)
            copy[...] = costs
            self.edges.append((u, v, copy))
            later[u].append(copy)
            earlier[v].append(copy)
        self._order = [
            _Node(costs, before, after, 1.0 / max(len(before), len(after), 1))
            for costs, before, after in zip(self.costs, earlier, later, strict=True)
        ]

    def _copy_loads(self, residual: Residual) -> None:
        loads = [(k, load) for k, node in enumerate(self.nodes) for load in residual.loads[node]]
        owners = np.array([k for k, _ in loads], dtype=np.int64)
        sizes = np.array([load.usage.size for _, load in loads], dtype=np.int64)
        self.load_owner = owners
        self.load_start = np.array([load.start for _, load in loads], dtype=np.int64)
        self.load_end = np.array([load.end for _, load in loads], dtype=np.int64)
        self.load_usage = np.concatenate([load.usage for _, load in loads] or [np.zeros(0)])
        self.load_offset = np.cumsum(sizes) - sizes
        within = np.arange(self.load_usage.size) - np.repeat(self.load_offset, sizes)
        self._load_slot = np.repeat(self.starts[owners], sizes) + within
        self._load_sizes = sizes

    def sweep(self, *, forward: bool) -> None:
        """Pass over all nodes once: collect from one side, hand on to the other.

        What cannot be chosen costs ``inf`` at its node and in its edges' rows, and stays so.
        """
        beliefs = self.beliefs
        order = enumerate(self._order) if forward else reversed(list(enumerate(self._order)))
        axis = 0 if forward else 1
        for k, node in order:
            sources, targets = (node.earlier, node.later) if forward else (node.later, node.earlier)
            belief = node.costs.copy()
            for costs in sources:
                message = costs.min(axis=axis)
                belief += message
                message[np.isinf(message)] = 0.0
                costs -= message if forward else message[:, None]
            beliefs[k] = belief
            given = belief * node.share if targets else belief
            for costs in targets:
                costs += given[:, None] if forward else given
            given = np.where(np.isinf(belief), 0.0, given)
            node.costs[...] = belief - len(targets) * given

    def bound(self) -> float:
        """Return the lower bound on the cost of every feasible assignment; ``inf``: none exists."""
        total = self.constant - float(self.prices @ self.capacity)
        if self.nodes:
            total += float(np.minimum.reduceat(self._flat, self.starts[:-1]).sum())
        if self.edges:
            total += float(np.minimum.reduceat(self._edge_flat, self._edge_starts).sum())
        return total

    def choice(self) -> Integers:
        """Return, per position, the strategy of least belief."""
        return np.array([belief.argmin() for belief in self.beliefs], dtype=np.int64)

    def excess(self, choice: Integers) -> Vector:
        """Return, per memory row, how far the usage of `choice` exceeds the capacity."""
        usage = self.load_usage[self.load_offset + choice[self.load_owner]]
        change = np.zeros(self.capacity.size + 1)
        np.add.at(change, self.load_start, usage)
        np.subtract.at(change, self.load_end, usage)
        return np.cumsum(change)[:-1] - self.capacity

    def reprice(self, prices: Vector) -> None:
        """Set the price of every memory row, moving the difference into the node costs."""
        change = np.concatenate([[0.0], np.cumsum(prices - self.prices)])
        per_load = change[self.load_end] - change[self.load_start]
        added = self.load_usage * np.repeat(per_load, self._load_sizes)
        self._flat += np.bincount(self._load_slot, added, minlength=self._flat.size)
        self.prices = prices.copy()

    def write_back(self, residual: Residual) -> None:
        """Give `residual`, from which this was made, the reparametrized costs without prices."""
        prices = self.prices
        self.reprice(np.zeros(prices.size))
        for node, costs in zip(self.nodes, self.costs, strict=True):
            residual.costs[node] = costs.copy()
        for u, v, costs in self.edges:
            residual.set_edge(self.nodes[u], self.nodes[v], costs.copy())
        self.reprice(prices)
