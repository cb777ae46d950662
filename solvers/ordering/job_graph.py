"""What the units of a chip do in every order: stages of ops, first loads, and stores of outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.traffic import NO_TRAFFIC, Traffic

NO_UNIT = -1
"""Of jobs that only wait."""


@dataclass
class JobGraph:
    """Jobs of `seconds` on `units`; `predecessors` end before a job starts.

    Jobs are numbered in a topological order.
    """

    units: list[int] = field(default_factory=list[int])
    seconds: list[float] = field(default_factory=list[float])
    predecessors: list[list[int]] = field(default_factory=list[list[int]])
    ops: dict[int, int] = field(default_factory=dict[int, int])
    """The jobs of ops with one stage that waits."""

    @staticmethod
    def of(
        graph: Graph,
        stages: Sequence[Sequence[tuple[int, float, bool]]],
        traffic: Traffic | None,
    ) -> "JobGraph":
        """The jobs of ops with `stages` of (unit, seconds, waits).

        A part of stored values is loaded behind their stores, where all ops that read it come
        behind those that make them.
        """
        jobs, moved = JobGraph(), traffic or NO_TRAFFIC
        ends = [0] * len(graph)
        loads: dict[int, int] = {}
        stores: dict[int, int] = {}
        above = _ancestors(graph, {op for v in moved.values if v.sources for op in v.consumers})
        for op in graph.topological_order:
            needs = [ends[before] for before in graph.predecessors[op]]
            for v in moved.reads.get(op, ()):
                value = moved.values[v]
                if value.is_leaf and v not in loads:
                    makers = {s: moved.values[s].producer for s in value.sources if s in stores}
                    behind = [
                        stores[s]
                        for s, maker in makers.items()
                        if all(above[user] >> (maker or 0) & 1 for user in value.consumers)
                    ]
                    loads[v] = jobs._add(moved.load_unit, value.load, behind)
                if v in loads:
                    needs.append(loads[v])
            ends[op] = jobs._issue(stages[op], needs)
            if len(stages[op]) == 1 and stages[op][0][2]:
                jobs.ops[op] = ends[op]
            for v in moved.makes.get(op, ()):
                if moved.values[v].output:
                    stores[v] = jobs._add(moved.store_unit, moved.values[v].store, [ends[op]])
        return jobs

    def __len__(self) -> int:
        return len(self.units)

    def _issue(self, stages: Sequence[tuple[int, float, bool]], needs: list[int]) -> int:
        last: list[int] = []
        waits = False
        for unit, seconds, waiting in stages:
            wanted = needs if waiting and not waits else []
            waits = waits or waiting
            last = [self._add(unit, seconds, [*last, *wanted])]
        if len(last) == 1 and waits:
            return last[0]
        return self._add(NO_UNIT, 0.0, [*last, *needs])

    def _add(self, unit: int, seconds: float, predecessors: Sequence[int]) -> int:
        self.units.append(unit)
        self.seconds.append(seconds)
        self.predecessors.append(sorted(set(predecessors)))
        return len(self.units) - 1


def _ancestors(graph: Graph, ops: set[int]) -> dict[int, int]:
    """The ancestors of each of `ops` as the bits of a number."""
    if not ops:
        return {}
    above = [0] * len(graph)
    for op in graph.topological_order:
        for before in graph.predecessors[op]:
            above[op] |= above[before] | 1 << before
    return {op: above[op] for op in ops}
