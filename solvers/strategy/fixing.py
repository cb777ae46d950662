"""Reduced-cost fixing: forbid what no assignment below a cutoff can use."""

from __future__ import annotations

import numpy as np

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.strategy.dual import DualAscent
from braid.solvers.strategy.problem import InfeasibleAssignment, Matrix, Vector
from braid.solvers.strategy.residual import Residual


def fix_by_bound(
    residual: Residual, dual: DualAscent, cutoff: float, deadline: Deadline = NEVER
) -> set[int]:
    """Forbid strategies and pairs whose lower bound exceeds `cutoff`; return the nodes concerned.

    The bound of a strategy is that of the star around its node: its neighbours answer it one by
    one while everything else stays at its minimum.

    Args:
        residual: the problem that `dual` was made from; it is changed.
        dual: reparametrized costs.
        cutoff: assignments that cost more are of no interest.
        deadline: when to leave the rest as it is.

    Raises:
        InfeasibleAssignment: the bound is ``inf``.
    """
    bound = dual.bound()
    if np.isinf(bound):
        raise InfeasibleAssignment("the forbidden pairs leave no assignment")
    gap = cutoff - bound
    over = [costs - costs.min() for costs in dual.costs]
    links: list[Matrix] = []
    stars = [costs.copy() for costs in over]
    for number, (u, v, costs) in enumerate(dual.edges):
        if number % 64 == 0 and deadline.passed:
            return set()
        links.append(costs + over[u][:, None] + over[v] - costs.min())
        stars[u] += _beyond(links[-1].min(axis=1), over[u])
        stars[v] += _beyond(links[-1].min(axis=0), over[v])
    changed = _forbid_strategies(residual, dual.nodes, stars, gap)
    for number, ((u, v, _), link) in enumerate(zip(dual.edges, links, strict=True)):
        if number % 64 == 0 and deadline.passed:
            break
        via_u = link + _beyond(stars[u], link.min(axis=1))[:, None]
        via_v = link + _beyond(stars[v], link.min(axis=0))
        beyond = np.maximum(via_u, via_v) > gap
        a, b = dual.nodes[u], dual.nodes[v]
        costs = residual.neighbours[a][b]
        if bool((beyond & np.isfinite(costs)).any()):
            residual.set_edge(a, b, np.where(beyond, np.inf, costs))
            changed |= {a, b}
    return changed


def _beyond(costs: Vector, least: Vector) -> Vector:
    """Return ``costs - least``, which is infinite where both are."""
    return costs - np.where(np.isinf(least), 0.0, least)


def _forbid_strategies(
    residual: Residual, nodes: list[int], stars: list[Vector], gap: float
) -> set[int]:
    changed: set[int] = set()
    for node, star in zip(nodes, stars, strict=True):
        beyond = star > gap
        if beyond.any():
            residual.costs[node] = np.where(beyond, np.inf, residual.costs[node])
            changed.add(node)
    return changed
