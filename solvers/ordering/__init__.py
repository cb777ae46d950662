"""Topological orders of least peak memory or least makespan, with bounds."""

from braid.solvers.ordering.graph import (
    Graph,
    all_orders,
    count_orders,
    key_nodes,
    split_at_key_nodes,
)
from braid.solvers.ordering.latency import LatencyProblem, UnitStage
from braid.solvers.ordering.memory import MemoryProblem, Tensor
from braid.solvers.ordering.residency import Residency, Sink
from braid.solvers.ordering.search import Order, baselines, search
from braid.solvers.ordering.traffic import Traffic, Value

__all__ = [
    "Graph",
    "LatencyProblem",
    "MemoryProblem",
    "Order",
    "Residency",
    "Sink",
    "Tensor",
    "Traffic",
    "UnitStage",
    "Value",
    "all_orders",
    "baselines",
    "count_orders",
    "key_nodes",
    "search",
    "split_at_key_nodes",
]
