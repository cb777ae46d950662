"""The entry of the strategy solver."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from braid.solvers.deadline import Deadline
from braid.solvers.strategy.dive import dive
from braid.solvers.strategy.dual import DualAscent
from braid.solvers.strategy.minimize import Limits, Minimizer
from braid.solvers.strategy.presolve import presolve
from braid.solvers.strategy.problem import (
    InfeasibleAssignment,
    Integers,
    StrategyProblem,
    evaluate,
)
from braid.solvers.strategy.residual import Residual

_RESERVE = 0.2
"""Most of the time limit that is kept for steps that cannot be cut short."""


@dataclass(frozen=True)
class Milestone:
    """State of the search after one phase."""

    seconds: float
    phase: str
    cost: float
    lower_bound: float
    nodes_left: int


@dataclass(frozen=True)
class Solution:
    """An assignment and how good it is.

    Attributes:
        assignment: strategy per node.
        cost: of the assignment, in the unit of the problem's costs.
        lower_bound: no assignment costs less.
        proven: the assignment is optimal (for fractional costs: up to one part in 10^9).
        stats: what the search did, in order.
    """

    assignment: tuple[int, ...]
    cost: float
    lower_bound: float
    proven: bool
    stats: tuple[Milestone, ...]

    @property
    def gap(self) -> float:
        """Return ``(cost - lower_bound) / cost``; 0 when proven."""
        if self.proven:
            return 0.0
        return (self.cost - self.lower_bound) / abs(self.cost) if self.cost else inf


def solve(
    problem: StrategyProblem, *, time_limit: float = 60.0, seed: int = 0, workers: int = 1
) -> Solution:
    """Minimize the cost of `problem`; the answer comes with a lower bound.

    The same seed gives the same answer wherever no step runs into the time limit.

    Args:
        problem: what to solve.
        time_limit: seconds after which the best answer so far is returned.
        seed: of all random decisions.
        workers: threads of the exact search.

    Raises:
        InfeasibleAssignment: no assignment exists; the message says why.
        TimeoutError: none was found in time, though one may exist.
    """
    deadline = Deadline.after(time_limit)
    residual = Residual.of(problem)
    # A step that cannot be interrupted takes at most twice that long, now and on this machine.
    taken = time_limit - deadline.remaining
    deadline = deadline.later_by(-min(2 * taken, _RESERVE * time_limit))
    limits = Limits(deadline, workers, np.random.default_rng(seed))
    pending = presolve(residual, limits.presolving(residual))
    if deadline.passed and residual.alive:
        # There is not even time for the search's copies of the problem.
        found, bound, proven, log = _in_order(residual), -inf, False, []
    else:
        search = Minimizer(residual.fresh_copy(), limits, pending=pending)
        search.run()
        found = search.choice if search.choice is not None else _in_order(residual)
        bound, proven, log = search.bound, search.proven, search.log
    if found is None:
        known = f" (none costs less than {bound:g})" if isfinite(bound) else ""
        raise TimeoutError(
            f"no feasible assignment found in {time_limit:g} s{known}; give more time or a larger "
            "memory limit"
        )
    choice = residual.complete(found)
    cost = evaluate(problem, choice)
    stats = tuple(Milestone(*entry) for entry in log)
    if not isfinite(bound) and not proven:
        bound = _at_least(problem)
    return Solution(_assignment(choice), cost, cost if proven else min(bound, cost), proven, stats)


def _at_least(problem: StrategyProblem) -> float:
    """Return what all costs add up to if each is its least, for want of a better bound."""
    return sum(float(costs.min()) for costs in (*problem.node_costs, *problem.edge_costs))


def _in_order(residual: Residual) -> Integers | None:
    """Return a choice by one pass, where each node has the least cost given those before, if it is
    feasible.

    This is the solution if no time is left: it takes about as long as reading the problem.
    """
    choice = np.zeros(len(residual.costs), dtype=np.int64)
    for node in sorted(residual.alive):
        score = residual.costs[node]
        for other, costs in residual.neighbours[node].items():
            if other < node:
                score = score + costs[:, choice[other]]
        choice[node] = score.argmin()
        if score[choice[node]] == inf:
            return None
    return choice if (residual.slack_of(choice) >= 0).all() else None


def greedy(problem: StrategyProblem) -> Solution:
    """Decide the nodes in order, each at least cost beside those decided; the bound is trivial.

    Raises:
        InfeasibleAssignment: the greedy order runs into too many dead ends.
    """
    residual = Residual.of(problem)
    dual = DualAscent(residual)
    choice = dive(residual, dual)
    if choice is None:
        raise InfeasibleAssignment("deciding the nodes in order leaves no strategy for some node")
    cost = evaluate(problem, choice)
    return Solution(_assignment(choice), cost, dual.bound(), cost <= dual.bound(), ())


def _assignment(choice: Integers) -> tuple[int, ...]:
    return tuple(choice.tolist())
