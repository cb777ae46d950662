"""Reductions that keep an optimal assignment, one node at a time.

R0, RI and RII are those of Scholz and Eckstein, "Register allocation for irregular architectures"
(LCTES 2002), after Carraway; dominance is Goldstein's criterion (Biophys. J. 66, 1994) for
dead-end elimination, with memory usage as a second objective. A node that memory rows see can
be contracted into a neighbour that determines it, but not minimized away.
"""

from __future__ import annotations

import numpy as np

from braid.solvers.strategy.problem import InfeasibleAssignment, Integers, Matrix, Vector
from braid.solvers.strategy.residual import EXACT, Load, Residual

TABLE_CELLS = 1 << 22
"""Largest temporary table that a single reduction may build."""


def keep_consistent(residual: Residual, node: int) -> bool:
    """Drop strategies that are forbidden or have no partner at some neighbour."""
    possible = np.isfinite(residual.costs[node])
    for other, costs in residual.neighbours[node].items():
        possible &= (costs + residual.costs[other]).min(axis=1) < np.inf
    if possible.all():
        return False
    residual.restrict(node, np.flatnonzero(possible))
    return True


def separate(costs: Matrix) -> tuple[Vector, Vector] | None:
    """Split a matrix that is ``rows[:, None] + columns`` into its two parts, or return None."""
    columns = costs[0]
    if not np.isfinite(costs).all():
        return None
    rows = costs[:, 0] - costs[0, 0]
    error = np.abs(rows[:, None] + columns - costs).max()
    return (rows, columns) if error <= EXACT * np.abs(costs).max() else None


def drop_separable_edges(residual: Residual, node: int) -> bool:
    """Move edges that are the sum of two vectors into the node costs."""
    dropped = False
    for other, costs in list(residual.neighbours[node].items()):
        parts = separate(costs)
        if parts is not None:
            residual.costs[node] = residual.costs[node] + parts[0]
            residual.costs[other] = residual.costs[other] + parts[1]
            residual.remove_edge(node, other)
            dropped = True
    return dropped


def settle(residual: Residual, node: int) -> bool:
    """R0: decide a node without edges and without memory usage, or with one strategy."""
    costs = residual.costs[node]
    if residual.neighbours[node] or (residual.loads[node] and costs.size > 1):
        return False
    best = int(costs.argmin())
    if not np.isfinite(costs[best]):
        raise InfeasibleAssignment(f"every strategy of node {node} is forbidden")
    residual.constant += float(costs[best])
    if residual.loads[node]:
        residual.capacity = residual.capacity.copy()
    for load in residual.loads[node]:
        residual.capacity[load.start : load.end] -= load.usage[0]
    residual.eliminate(node, (), np.array(best))
    return True


def contract_leaf(residual: Residual, node: int) -> bool:
    """RI: minimize a node with one neighbour away."""
    if len(residual.neighbours[node]) != 1 or residual.loads[node]:
        return False
    ((other, costs),) = residual.neighbours[node].items()
    table = residual.costs[node][:, None] + costs
    best = table.argmin(axis=0)
    residual.costs[other] = residual.costs[other] + table.min(axis=0)
    residual.eliminate(node, (other,), best)
    return True


def contract_path(residual: Residual, node: int) -> bool:
    """RII: minimize a node with two neighbours away, leaving an edge between them."""
    if len(residual.neighbours[node]) != 2 or residual.loads[node]:
        return False
    (a, to_a), (b, to_b) = residual.neighbours[node].items()
    if to_a.size * to_b.shape[1] > TABLE_CELLS:
        return False
    table = (residual.costs[node][:, None] + to_a)[:, :, None] + to_b[:, None, :]
    best = table.argmin(axis=0)
    residual.eliminate(node, (a, b), best)
    residual.add_edge(a, b, table.min(axis=0))
    return True


def contract_determined(residual: Residual, node: int) -> bool:
    """Merge a node into a neighbour each of whose strategies leaves it a single choice."""
    for other, costs in residual.neighbours[node].items():
        if costs.shape[0] > costs.shape[1]:
            continue
        finite = np.isfinite(costs)
        if int(finite.sum(axis=0).max()) == 1:
            _merge(residual, node, other, finite.argmax(axis=0))
            return True
    return False


def _merge(residual: Residual, node: int, into: int, choice: Integers) -> None:
    edges = residual.neighbours[node]
    link = edges[into][choice, np.arange(choice.size)]
    residual.costs[into] = residual.costs[into] + residual.costs[node][choice] + link
    moved = [(other, costs[choice]) for other, costs in edges.items() if other != into]
    loads = [Load(x.start, x.end, x.usage[choice]) for x in residual.loads[node]]
    residual.eliminate(node, (into,), choice)
    for other, costs in moved:
        residual.add_edge(into, other, costs)
    residual.loads[into] = merge_loads(residual.loads[into] + loads)


def merge_loads(loads: list[Load]) -> list[Load]:
    """Add up loads over the same rows."""
    total: dict[tuple[int, int], Vector] = {}
    for load in loads:
        span = (load.start, load.end)
        total[span] = total[span] + load.usage if span in total else load.usage
    return [Load(start, end, usage) for (start, end), usage in total.items()]


def drop_dominated(residual: Residual, node: int) -> bool:
    """Drop strategies that another one dominates for all choices of the neighbours."""
    costs = residual.costs[node]
    size = costs.size
    edges = residual.neighbours[node].values()
    if size == 1 or any(size * edge.size > TABLE_CELLS for edge in edges):
        return False
    worst = costs[:, None] - costs  # worst[s, t]: how much more s may cost than t
    for edge in edges:
        with np.errstate(invalid="ignore"):
            difference = edge[:, None, :] - edge
        difference[:, np.isinf(edge)] = -np.inf  # where t is forbidden, s is no worse
        added = difference.max(axis=2)
        impossible = (worst == -np.inf) | (added == -np.inf)  # t has no partner at some edge
        with np.errstate(invalid="ignore"):
            worst = np.where(impossible, -np.inf, worst + added)
    dominates = worst <= 0
    for load in residual.loads[node]:
        dominates &= load.usage[:, None] <= load.usage
    np.fill_diagonal(dominates, False)
    tied = dominates & dominates.T
    dominates &= ~(tied & (np.arange(size)[:, None] > np.arange(size)))
    dominated = dominates.any(axis=0)
    if not dominated.any():
        return False
    residual.restrict(node, np.flatnonzero(~dominated))
    return True
