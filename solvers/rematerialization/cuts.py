"""Choose ops that make good cuts for the relaxation of `cut_model`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from braid.solvers.rematerialization.problem import Problem


def critical_path(problem: Problem, excess: Sequence[int]) -> tuple[int, ...]:
    """Return the path of required ops that collects the most `excess[op]` (>= 0), in order."""
    total: dict[int, int] = {}
    before: dict[int, int | None] = {}
    for op in problem.required:
        best = max(problem.predecessors[op], key=total.__getitem__, default=None)
        before[op] = best
        total[op] = excess[op] + (0 if best is None else total[best])
    op = max(total, key=total.__getitem__, default=None)
    path: list[int] = []
    while op is not None:
        path.append(op)
        op = before[op]
    return tuple(reversed(path))


def choose_cuts(
    problem: Problem, profile: NDArray[np.int64], order: Sequence[int], budget: int, count: int
) -> tuple[int, ...]:
    """Return about `count` cuts: the fullest op of a critical path and others spread over it.

    `profile[i]` is the memory of `order[i]` when `order` runs without recomputation; only ops where
    it exceeds the budget can force a recomputation, so only they are worth a cut.
    """
    used = dict(zip(order, (int(size) for size in profile), strict=True))
    excess = [max(0, used.get(op, 0) - budget) for op in range(len(problem.ops))]
    over = [op for op in critical_path(problem, excess) if excess[op]]
    if len(over) <= count:
        return tuple(over)
    fullest = max(over, key=excess.__getitem__)
    last = len(over) - 1
    spread = {over[last * step // max(1, count - 1)] for step in range(count)}
    return tuple(op for op in over if op == fullest or (op in spread and count > 1))
