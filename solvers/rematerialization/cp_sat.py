"""Call CP-SAT with a time limit and a seed."""

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model


@dataclass(frozen=True)
class Limits:
    """The effort that one call may take: wall-clock seconds, and the random seed."""

    seconds: float
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """`values` is the best assignment found, or None; `bound` holds for the objective."""

    solver: cp_model.CpSolver | None
    bound: float
    optimal: bool
    infeasible: bool


def run_cp_sat(solver: cp_model.CpSolver, model: cp_model.CpModel, limits: Limits) -> Outcome:
    """Minimize `model` within `limits`, by a new `solver`.

    The memory constraints are knapsacks whose linear relaxation carries most of the proof, so the
    linear relaxation is asked for in full: a single thread then closes models in seconds that stay
    open for minutes without.
    """
    solver.parameters.max_time_in_seconds = max(0.01, limits.seconds)
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = limits.seed
    solver.parameters.linearization_level = 2
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    known = found or status == cp_model.UNKNOWN
    return Outcome(
        solver if found else None,
        solver.best_objective_bound if known else 0.0,
        status == cp_model.OPTIMAL,
        status == cp_model.INFEASIBLE,
    )


def weighted_sum(
    literals: Sequence[cp_model.IntVar], weights: Sequence[int]
) -> cp_model.LinearExpr:
    """Return the sum of `weights[i] * literals[i]`, with the types that OR-Tools leaves out."""
    return cp_model.LinearExpr.weighted_sum(literals, weights)  # pyright: ignore[reportUnknownMemberType]
