"""Strategy assignment problems whose optimum is known by construction, at any size.

One assignment is hidden. Every node and edge gets costs of at least 0, and 0 for what the hidden
assignment takes: it is optimal. Then costs move between edges and their ends, which changes no
assignment's total, but hides which costs are 0.

With memory, some times have a price. A strategy's cost is less its usage at the prices of the times
when the node is live, and at each of these times the hidden assignment uses exactly the limit.
Cheaper strategies use more, which the limit forbids: by Lagrangian duality the hidden assignment is
still optimal, and every priced limit binds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from braid.solvers.strategy import ProblemBuilder, StrategyProblem

_SPREAD = 40
"""Largest cost above the hidden one's, before any is moved."""


@dataclass(frozen=True)
class PlantedStrategies:
    """A problem, an optimal assignment, and its cost."""

    problem: StrategyProblem
    assignment: tuple[int, ...]
    optimum: float


def planted_strategies(nodes: int, seed: int, *, memory: bool = False) -> PlantedStrategies:
    """Return a chain of layers with edges across and a few far ones; 2 to 9 strategies each."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 10, nodes)
    hidden = np.array([int(rng.integers(size)) for size in sizes])
    costs = [_zero_at(rng, (size,), (choice,)) for size, choice in zip(sizes, hidden, strict=True)]
    optimum = 0.0
    edges: list[tuple[int, int, np.ndarray]] = []
    for v in range(1, nodes):
        near = {v - 1 - int(rng.integers(0, 6)) for _ in range(int(rng.integers(1, 4)))}
        if rng.random() < 0.02:
            near.add(int(rng.integers(0, v)))
        for u in sorted(u for u in near if u >= 0):
            matrix = _zero_at(rng, (sizes[u], sizes[v]), (hidden[u], hidden[v]))
            forbidden = rng.random(matrix.shape) < 0.05
            forbidden[hidden[u], hidden[v]] = False
            for node, axis in ((u, 0), (v, 1)):
                moved = rng.integers(0, _SPREAD, sizes[node]).astype(float)
                matrix += moved[:, None] if axis == 0 else moved
                costs[node] -= moved
            edges.append((u, v, np.where(forbidden, inf, matrix)))
    usages, live, limit = None, None, None
    if memory:
        usages, live, limit, price = _memory(rng, hidden, sizes)
        costs = [own - price[node] * usages[node] for node, own in enumerate(costs)]
    builder = ProblemBuilder()
    for node, own in enumerate(costs):
        least = float(own.min())
        costs[node] = own - least
        if usages is None or live is None:
            builder.add_node(costs[node])
        else:
            builder.add_node(costs[node], usage=usages[node], live=live[node])
        optimum += float(costs[node][hidden[node]])
    for u, v, matrix in edges:
        builder.add_edge(u, v, matrix)
        optimum += float(matrix[hidden[u], hidden[v]])
    assignment = hidden.tolist()
    if live is not None and limit is not None:
        assignment += _fill(builder, usages or [], live, hidden, limit)
    return PlantedStrategies(builder.build(memory_limit=limit), tuple(assignment), optimum)


def _zero_at(
    rng: np.random.Generator, shape: tuple[int, ...], place: tuple[int, ...]
) -> np.ndarray:
    costs = rng.integers(0, _SPREAD, shape).astype(float)
    costs[rng.random(shape) < 0.2] = 0.0
    costs[place] = 0.0
    return costs


def _memory(
    rng: np.random.Generator, hidden: np.ndarray, sizes: np.ndarray
) -> tuple[list[np.ndarray], list[tuple[int, int]], int, np.ndarray]:
    """Return usages, lifetimes, the limit, and per node the price of the times at which it is
    live."""
    nodes = len(sizes)
    usages = [rng.integers(0, 60, size) for size in sizes]
    horizon = max(4, nodes // 4)
    starts = np.arange(nodes) * horizon // nodes
    lengths = np.minimum(1 + rng.geometric(0.1, nodes), horizon - starts)
    live = [(int(s), int(s + length)) for s, length in zip(starts, lengths, strict=True)]
    prices = np.where(rng.random(horizon) < 0.15, rng.integers(1, 3, horizon), 0)
    before = np.concatenate([[0], np.cumsum(prices)])
    price = np.array([before[end] - before[start] for start, end in live], dtype=float)
    used = _used(usages, live, hidden, horizon)
    return usages, live, int(used.max()), np.where(price > 0, price, 0.0)


def _used(
    usages: list[np.ndarray], live: list[tuple[int, int]], hidden: np.ndarray, horizon: int
) -> np.ndarray:
    change = np.zeros(horizon + 1, dtype=np.int64)
    for usage, (start, end), choice in zip(usages, live, hidden, strict=True):
        change[start] += usage[choice]
        change[end] -= usage[choice]
    return np.cumsum(change)[:-1]


def _fill(
    builder: ProblemBuilder,
    usages: list[np.ndarray],
    live: list[tuple[int, int]],
    hidden: np.ndarray,
    limit: int,
) -> list[int]:
    """Add nodes with one strategy that use up the rest that the hidden assignment leaves at every
    time."""
    horizon = max(end for _, end in live)
    used = _used(usages, live, hidden, horizon)
    for time, amount in enumerate(used.tolist()):
        builder.add_node([0.0], usage=[limit - amount], live=(time, time + 1))
    return [0] * horizon
