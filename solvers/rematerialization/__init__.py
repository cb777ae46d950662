"""Rematerialization under a memory budget: order and recomputation chosen together."""

from braid.solvers.rematerialization.minimum import MinimumBudget as MinimumBudget
from braid.solvers.rematerialization.minimum import minimum_budget as minimum_budget
from braid.solvers.rematerialization.problem import InfeasibleBudgetError as InfeasibleBudgetError
from braid.solvers.rematerialization.problem import Op as Op
from braid.solvers.rematerialization.problem import Problem as Problem
from braid.solvers.rematerialization.problem import Schedule as Schedule
from braid.solvers.rematerialization.simulate import Simulation as Simulation
from braid.solvers.rematerialization.simulate import simulate as simulate
from braid.solvers.rematerialization.solve import solve as solve
