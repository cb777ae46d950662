"""Topological orders of least peak memory or least makespan, with bounds."""

from braid.solvers.ordering.graph import Graph, count_orders
from braid.solvers.ordering.key_nodes import key_nodes, split_at_key_nodes
from braid.solvers.ordering.latency import LatencyProblem, Stage
from braid.solvers.ordering.memory import MemoryProblem, Tensor
from braid.solvers.ordering.search import Order, baselines, search

__all__ = [
    "Graph",
    "LatencyProblem",
    "MemoryProblem",
    "Order",
    "Stage",
    "Tensor",
    "baselines",
    "count_orders",
    "key_nodes",
    "search",
    "split_at_key_nodes",
]
