"""Strategy assignment: every node picks one strategy at least total node and edge cost."""

from braid.solvers.strategy.builder import ProblemBuilder
from braid.solvers.strategy.problem import (
    InfeasibleAssignment,
    MemoryLimit,
    StrategyProblem,
    evaluate,
)
from braid.solvers.strategy.solve import Milestone, Solution, greedy, solve

__all__ = [
    "InfeasibleAssignment",
    "MemoryLimit",
    "Milestone",
    "ProblemBuilder",
    "Solution",
    "StrategyProblem",
    "evaluate",
    "greedy",
    "solve",
]
