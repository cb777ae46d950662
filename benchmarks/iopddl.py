"""Reader of the strategy assignment instances of google/iopddl (ASPLOS 2025 contest)."""

from __future__ import annotations

import gzip
import json
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from braid.solvers.strategy import ProblemBuilder, StrategyProblem

FORBIDDEN = 10**18
"""Costs from here on stand for infinity."""


def read_iopddl(path: Path, *, memory: bool = True) -> StrategyProblem:
    """Read a contest instance, plain or gzipped; without `memory` the usage limit is dropped."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        data: dict[str, Any] = json.load(file)["problem"]
    nodes, edges = data["nodes"], data["edges"]
    builder = ProblemBuilder()
    for costs, usage, interval in zip(
        nodes["costs"], nodes["usages"], nodes["intervals"], strict=True
    ):
        live = tuple(interval) if interval else (0, 0)
        builder.add_node(_costs(costs), usage=usage, live=live)
    for (u, v), costs in zip(edges["nodes"], edges["costs"], strict=True):
        builder.add_edge(u, v, _costs(costs).reshape(len(nodes["costs"][u]), -1))
    return builder.build(memory_limit=data.get("usage_limit") if memory else None)


def _costs(values: list[int]) -> np.ndarray:
    costs = np.array(values, dtype=np.float64)
    return np.where(costs >= FORBIDDEN, inf, costs)
