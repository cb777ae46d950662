"""Layout selection problems as a layout pass poses them, in the shapes of well-known networks.

Every op chooses a layout; every value chooses the set of layouts it is made available in. The edge
between an op and its result pays the reorders, once per layout; the edge between a value and its
consumer forbids sets that lack the consumer's layout. Costs are seconds times expected executions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import inf

import numpy as np

from braid.solvers.strategy import ProblemBuilder, StrategyProblem

LAYOUTS = 4
_SETS = [s for size in (1, 2) for s in combinations(range(LAYOUTS), size)]
_MEMBER = np.array([[layout in s for s in _SETS] for layout in range(LAYOUTS)])


@dataclass
class LayoutGraph:
    """Appends ops to a problem; a value is the index of its node."""

    rng: np.random.Generator
    builder: ProblemBuilder = field(default_factory=ProblemBuilder)
    ops: int = 0
    weight: float = 1.0

    def op(self, *operands: int, transparent: bool = False) -> int:
        """Add an op that reads `operands` and return its result."""
        seconds = self.rng.lognormal(-8, 1.5)
        speed = np.ones(LAYOUTS) if transparent else self.rng.uniform(1.0, 3.0, LAYOUTS)
        op = self.builder.add_node(self.weight * seconds * speed)
        for value in operands:
            self.builder.add_edge(value, op, np.where(_MEMBER.T, 0.0, inf))
        self.ops += 1
        return self._result(op)

    def _result(self, op: int) -> int:
        reorder = self.weight * self.rng.lognormal(-8.5, 1.0) * self.rng.uniform(0.5, 1.5, LAYOUTS)
        value = self.builder.add_node(np.zeros(len(_SETS)))
        made = (_MEMBER * reorder[:, None]).sum(axis=0)[None, :] - reorder[:, None]
        self.builder.add_edge(op, value, np.where(_MEMBER, made, inf))
        return value

    def tie(self, first: int, second: int) -> None:
        """Make two values (a loop's initial and carried one) share their layouts."""
        self.builder.add_edge(first, second, np.where(np.eye(len(_SETS)) > 0, 0.0, inf))


def residual_block(graph: LayoutGraph, value: int) -> int:
    """Three convolutions and an addition of the input."""
    inner = value
    for _ in range(3):
        inner = graph.op(inner)
        inner = graph.op(inner, transparent=True)
    return graph.op(inner, value, transparent=True)


def inception_block(graph: LayoutGraph, value: int) -> int:
    """Four branches of one to three convolutions, concatenated."""
    branches: list[int] = []
    for length in (1, 2, 3, 2):
        branch = value
        for _ in range(length):
            branch = graph.op(branch)
        branches.append(branch)
    return graph.op(*branches, transparent=True)


def dense_block(graph: LayoutGraph, value: int) -> int:
    """Every layer reads the concatenation of all earlier results."""
    values = [value]
    for _ in range(int(graph.rng.choice([6, 12, 24]))):
        joined = graph.op(*values, transparent=True)
        values.append(graph.op(graph.op(joined)))
    return graph.op(*values, transparent=True)


def loop_block(graph: LayoutGraph, value: int, depth: int = 0) -> int:
    """Return a loop whose carried value keeps its layouts; loops nest up to three deep."""
    outer, graph.weight = graph.weight, graph.weight * float(graph.rng.integers(2, 20))
    inner = graph.op(value)
    if depth < 2 and graph.rng.random() < 0.5:
        inner = loop_block(graph, inner, depth + 1)
    inner = graph.op(residual_block(graph, inner))
    graph.tie(value, inner)
    graph.weight = outer
    return graph.op(inner)


def layout_problem(ops: int, *, seed: int = 0) -> StrategyProblem:
    """Return a network of at least `ops` ops with four layouts each."""
    graph = LayoutGraph(np.random.default_rng(seed))
    value = graph.op()
    blocks = (residual_block, inception_block, dense_block, loop_block)
    while graph.ops < ops:
        block = blocks[int(graph.rng.choice(4, p=[0.45, 0.3, 0.1, 0.15]))]
        value = block(graph, value)
    return graph.builder.build()
