"""Exact dynamic programming over an elimination order (bucket elimination).

Dechter, "Bucket elimination" (1999); the order is the better of greedy min-fill and min-size.
Cost and memory are exponential in the treewidth only: layout graphs of models have a small one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.strategy.problem import InfeasibleAssignment, Vector
from braid.solvers.strategy.residual import Residual


@dataclass(frozen=True)
class EliminationOrder:
    """Nodes in the order in which they are minimized away.

    Attributes:
        nodes: the order.
        largest: cells of the largest table.
        total: cells of all tables together.
    """

    nodes: tuple[int, ...]
    largest: int
    total: int


def components(residual: Residual) -> list[list[int]]:
    """Return the connected components of the live nodes, each ascending."""
    seen: set[int] = set()
    found: list[list[int]] = []
    for root in sorted(residual.alive):
        if root in seen:
            continue
        seen.add(root)
        members = [root]
        for node in members:
            fresh = [v for v in residual.neighbours[node] if v not in seen]
            seen.update(fresh)
            members.extend(fresh)
        found.append(sorted(members))
    return found


def independent_parts(residual: Residual) -> list[list[int]]:
    """Return sets of nodes that neither edges nor memory rows couple."""
    parts = components(residual)
    coupled = [part for part in parts if any(residual.loads[node] for node in part)]
    free = [part for part in parts if not any(residual.loads[node] for node in part)]
    return [*free, sorted(node for part in coupled for node in part)] if coupled else free


def elimination_order(
    residual: Residual, nodes: Iterable[int], *, largest: float = inf, deadline: Deadline = NEVER
) -> EliminationOrder | None:
    """Return a greedy order for `nodes`, which must be closed under neighbourhood.

    None where no order has been found at `deadline`, or all need a table of more than `largest`
    cells.
    """
    members = list(nodes)
    tried = (_greedy_order(residual, members, rule, largest, deadline) for rule in (_fill, _size))
    orders = [order for order in tried if order is not None]
    if not orders:
        return None
    return min(orders, key=lambda order: (order.largest, order.total))


def eliminate(residual: Residual, order: EliminationOrder) -> None:
    """Decide the nodes of `order` optimally; none of them may carry a memory load.

    Raises:
        InfeasibleAssignment: no choice avoids every forbidden pair.
    """
    tables: dict[int, list[_Table]] = {node: [] for node in order.nodes}
    rank = {node: k for k, node in enumerate(order.nodes)}
    for node in order.nodes:
        tables[node].append(_Table((node,), residual.costs[node]))
        for other, costs in residual.neighbours[node].items():
            if rank[node] < rank[other]:
                tables[node].append(_Table((node, other), costs))
    for node in order.nodes:
        joined = _join(node, tables.pop(node))
        best = np.asarray(joined.values.argmin(axis=0))
        rest = _Table(joined.scope[1:], np.asarray(joined.values.min(axis=0)))
        residual.eliminate(node, rest.scope, best.astype(np.min_scalar_type(len(joined.values))))
        if rest.scope:
            tables[min(rest.scope, key=rank.__getitem__)].append(rest)
        else:
            if np.isinf(rest.values):
                raise InfeasibleAssignment(
                    f"every strategy of node {node} is forbidden next to any choice of the nodes"
                    " that it is connected with"
                )
            residual.constant += float(rest.values)


@dataclass(frozen=True)
class _Table:
    """A function of the strategies of `scope`, one axis each."""

    scope: tuple[int, ...]
    values: Vector


def _join(node: int, tables: list[_Table]) -> _Table:
    """Add the tables up; `node` becomes the first axis."""
    others = sorted({v for table in tables for v in table.scope if v != node})
    scope = (node, *others)
    axis = {v: k for k, v in enumerate(scope)}
    total = np.zeros((1,) * len(scope))
    for table in sorted(tables, key=lambda table: table.values.ndim):
        positions = [axis[v] for v in table.scope]
        by_axis = table.values.transpose(np.argsort(positions))
        shape = [1] * len(scope)
        for position, size in zip(sorted(positions), by_axis.shape, strict=True):
            shape[position] = size
        total = total + by_axis.reshape(shape)
    return _Table(scope, total)


_Rule = Callable[[int, dict[int, set[int]], dict[int, int]], float]


def _fill(node: int, adjacent: dict[int, set[int]], sizes: dict[int, int]) -> float:
    around = adjacent[node]
    missing = sum(len(around) - 1 - len(around & adjacent[v]) for v in around)
    return missing + _size(node, adjacent, sizes) * 1e-18


def _size(node: int, adjacent: dict[int, set[int]], sizes: dict[int, int]) -> float:
    return float(prod(sizes[v] for v in adjacent[node])) * sizes[node]


def _greedy_order(
    residual: Residual, nodes: list[int], rule: _Rule, largest: float, deadline: Deadline
) -> EliminationOrder | None:
    adjacent = {node: set(residual.neighbours[node]) for node in nodes}
    sizes = {node: residual.costs[node].size for node in nodes}
    score = {node: rule(node, adjacent, sizes) for node in nodes}
    heap = [(value, node) for node, value in score.items()]
    heapq.heapify(heap)
    order: list[int] = []
    cells: list[int] = []
    while heap:
        value, node = heapq.heappop(heap)
        if score.get(node) != value:
            continue
        del score[node]
        order.append(node)
        around = adjacent.pop(node)
        cells.append(prod(sizes[v] for v in around) * sizes[node])
        if cells[-1] > largest or deadline.passed:
            return None
        for v in around:
            adjacent[v] |= around
            adjacent[v] -= {v, node}
        for v in around.union(*(adjacent[v] for v in around)) if around else ():
            value = rule(v, adjacent, sizes)
            if value != score[v]:
                score[v] = value
                heapq.heappush(heap, (value, v))
    return EliminationOrder(tuple(order), max(cells, default=0), sum(cells))
