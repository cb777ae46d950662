"""Lower bounds by reparametrization: sequential tree-reweighted message passing and row prices.

Costs are moved between nodes and edges without changing the cost of any assignment; the sum of
all minima is then a lower bound (the dual of the local polytope LP). The moves are those of
TRW-S: Kolmogorov, "Convergent tree-reweighted message passing" (PAMI 2006), in C. Memory rows enter
by Lagrangian relaxation with a non-negative price each.
"""

from __future__ import annotations

import numpy as np

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.strategy.native import NativeSweep
from braid.solvers.strategy.problem import Integers, Matrix, Vector
from braid.solvers.strategy.residual import Residual


class DualAscent:
    """A reparametrized copy of a residual problem whose bound only ever improves by sweeping.

    Attributes:
        nodes: the live nodes, ascending: the order of a forward sweep.
        edges: ``(position of earlier node, position of later node, costs)``.
        costs: per position, reparametrized node costs including prices (views of one array).
        beliefs: per position, the costs with messages of the last sweep; the least is a good
            choice.
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
        self._belief = self._flat.copy()
        self.beliefs = [
            self._belief[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]
        self._copy_edges(residual)
        self._copy_loads(residual)
        if prices is not None:
            self.reprice(prices)

    def _copy_edges(self, residual: Residual) -> None:
        pairs = residual.edges_among(self.nodes)
        spans = np.cumsum([0, *(costs.size for _, _, costs in pairs)], dtype=np.int64)
        self._edge_starts = spans[:-1]
        self._edge_flat = np.empty(int(spans[-1]))
        self.edges: list[tuple[int, int, Matrix]] = []
        for (u, v, costs), start in zip(pairs, spans.tolist(), strict=False):
            copy = self._edge_flat[start : start + costs.size].reshape(costs.shape)
            copy[...] = costs
            self.edges.append((u, v, copy))
        self._native = NativeSweep(self.starts, spans, [(u, v) for u, v, _ in pairs])

    def _copy_loads(self, residual: Residual) -> None:
        loads = [(k, load) for k, node in enumerate(self.nodes) for load in residual.loads[node]]
        owners = np.array([k for k, _ in loads], dtype=np.int64)
        sizes = np.array([load.usage.size for _, load in loads], dtype=np.int64)
        self.load_start = np.array([load.start for _, load in loads], dtype=np.int64)
        self.load_end = np.array([load.end for _, load in loads], dtype=np.int64)
        self.load_usage = np.concatenate([load.usage for _, load in loads] or [np.zeros(0)])
        self.load_offset = np.cumsum(sizes) - sizes
        within = np.arange(self.load_usage.size) - np.repeat(self.load_offset, sizes)
        self._load_slot = np.repeat(self.starts[owners], sizes) + within
        self._load_sizes = sizes

    def sweep(self, *, forward: bool, deadline: Deadline = NEVER) -> None:
        """Pass over all nodes once: collect from one side, push to the other.

        After `deadline` the rest is left out, which keeps the bound valid.

        An impossible choice costs ``inf`` at its node and in its edges' rows, and stays so.
        """
        self._native.sweep(
            self._flat, self._edge_flat, self._belief, forward=forward, deadline=deadline
        )

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

    def regrets(self) -> Vector:
        """Return, for all strategies in a row, their beliefs beyond the least of their nodes."""
        if not self.nodes:
            return self._belief
        least = np.minimum.reduceat(self._belief, self.starts[:-1])
        least[np.isinf(least)] = 0.0
        return self._belief - np.repeat(least, np.diff(self.starts))

    def expected_excess(self, temperature: float) -> Vector:
        """Return, per memory row, how far the expected usage exceeds the capacity.

        A strategy is as likely as ``exp(-regret / temperature)`` says.
        """
        if not self.load_usage.size:
            return -self.capacity
        weight = np.exp(-self.regrets() / max(temperature, 1e-300))
        total = np.add.reduceat(weight, self.starts[:-1])
        weight /= np.repeat(np.where(total > 0, total, 1.0), np.diff(self.starts))
        usage = np.add.reduceat(self.load_usage * weight[self._load_slot], self.load_offset)
        change = np.bincount(self.load_start, usage, minlength=self.capacity.size + 1)
        change -= np.bincount(self.load_end, usage, minlength=self.capacity.size + 1)
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
