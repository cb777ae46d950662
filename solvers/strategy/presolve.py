"""Apply every reduction until none applies any more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.strategy import reductions
from braid.solvers.strategy.residual import Residual
from braid.solvers.strategy.rows import tighten_rows

_IN_PLACE = (reductions.keep_consistent, reductions.drop_separable_edges)
_REMOVING = (
    reductions.settle,
    reductions.contract_leaf,
    reductions.contract_path,
    reductions.contract_determined,
)


def presolve(
    residual: Residual, deadline: Deadline = NEVER, pending: Iterable[int] | None = None
) -> set[int]:
    """Reduce `residual` to a fixed point, or until `deadline`: what is left is equivalent.

    Args:
        residual: what is reduced.
        deadline: when to stop.
        pending: nodes at which something has changed since the last fixed point; all by default.

    Returns:
        The nodes that are still pending at `deadline`.

    Raises:
        InfeasibleAssignment: a node or a memory row cannot be satisfied.
    """
    queue = set(residual.alive if pending is None else pending)
    while queue and not deadline.passed:
        queue |= tighten_rows(residual)
        queue = _reduce_nodes(residual, sorted(queue & residual.alive), deadline)
        if not queue:
            queue = tighten_rows(residual)
    return queue & residual.alive


def _reduce_nodes(residual: Residual, nodes: Iterable[int], deadline: Deadline) -> set[int]:
    """Reduce `nodes` and what that changes; return those that are left at `deadline`."""
    queue = deque(nodes)
    queued = set(queue)
    while queue and not deadline.passed:
        node = queue.popleft()
        queued.discard(node)
        if node not in residual.alive:
            continue
        around = list(residual.neighbours[node])
        if _reduce(residual, node):
            for other in (node, *around):
                if other in residual.alive and other not in queued:
                    queued.add(other)
                    queue.append(other)
    return queued


def _reduce(residual: Residual, node: int) -> bool:
    changed = False
    for reduction in _IN_PLACE:
        changed |= reduction(residual, node)
    if any(reduction(residual, node) for reduction in _REMOVING):
        return True
    return reductions.drop_dominated(residual, node) or changed
