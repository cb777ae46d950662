"""Choose the device of each op: exactly for small graphs, with a bound for large ones."""

from braid.solvers.partition.problem import (
    InfeasiblePartition,
    Objective,
    PartitionProblem,
    cost,
    loads,
)
from braid.solvers.partition.solve import Partition, solve

__all__ = [
    "InfeasiblePartition",
    "Objective",
    "Partition",
    "PartitionProblem",
    "cost",
    "loads",
    "solve",
]
