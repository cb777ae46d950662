"""Derive the work of a chip's units in every order, and the jobs of one of them.

Ops of one unit that share all operands but one form a group. If the operands and the result of
either op leave too little memory for the other's own operand, that operand is loaded only after the
first of the two has run, and the second waits for it. This is a setup, as on a machine with
sequence-dependent setup times. Whatever else runs meanwhile, a group takes its work and a setup for
each own operand but the first; which that is, an order decides, so that the longest is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.traffic import NO_TRAFFIC, Traffic

NO_UNIT = -1
"""The unit of jobs that only wait."""


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
        """Return the jobs of ops with `stages` of (unit, seconds, waits).

        A part of stored values is loaded after their stores, where all ops that read it come
        after those that make them.
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
                    waits = [
                        stores[s]
                        for s, maker in makers.items()
                        if all(above[user] >> (maker or 0) & 1 for user in value.consumers)
                    ]
                    loads[v] = jobs._add(moved.load_unit, value.load, waits)
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
    """Return the ancestors of each of `ops` as the bits of a number."""
    if not ops:
        return {}
    above = [0] * len(graph)
    for op in graph.topological_order:
        for before in graph.predecessors[op]:
            above[op] |= above[before] | 1 << before
    return {op: above[op] for op in ops}


Job = tuple[float, float, float]
"""Head, duration and tail."""


def one_machine_bound(jobs: Sequence[Job]) -> float:
    """Return the makespan of `jobs` on one machine with preemption.

    Jackson's schedule: at any time run, of the jobs whose head has passed, the one with the longest
    tail.
    """
    pending = sorted(jobs)
    available: list[tuple[float, float]] = []
    now, bound, index = 0.0, 0.0, 0
    while index < len(pending) or available:
        if not available:
            now = max(now, pending[index][0])
        while index < len(pending) and pending[index][0] <= now:
            heappush(available, (-pending[index][2], pending[index][1]))
            index += 1
        tail, duration = heappop(available)
        arrival = pending[index][0] if index < len(pending) else inf
        if now + duration <= arrival:
            now += duration
            bound = max(bound, now - tail)
        else:
            heappush(available, (tail, duration - (arrival - now)))
            now = arrival
    return bound


Stages = Sequence[Sequence[tuple[int, float, bool]]]


@dataclass(frozen=True)
class Setup:
    """Loading the `operand` that an op has for its own in its `group` takes `seconds`."""

    group: int
    operand: int
    seconds: float


def setups(stages: Stages, traffic: Traffic) -> dict[int, Setup]:
    """Return the setups by op, for ops with one stage; `stages` are (unit, seconds, waits) by
    op."""
    groups: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
    for op, reads in traffic.reads.items():
        leaves = [(traffic.values[v].size, v) for v in reads if traffic.values[v].is_leaf]
        if leaves and len(stages[op]) == 1 and stages[op][0][2]:
            own = max(leaves)[1]
            shared = tuple(sorted(v for v in reads if v != own))
            groups.setdefault((stages[op][0][0], shared), []).append((op, own))
    found: dict[int, Setup] = {}
    for number, members in enumerate(groups.values()):
        free = traffic.capacity - min(_held(traffic, op) for op, _ in members)
        if min(traffic.values[own].size for _, own in members) > free:
            found |= {op: Setup(number, own, traffic.values[own].load) for op, own in members}
    return found


def _held(traffic: Traffic, op: int) -> int:
    """Return the bytes on the chip while `op` runs, whether or not its result lies over an
    operand.
    """
    made = () if op in traffic.over else traffic.makes.get(op, ())
    return sum(traffic.values[v].size for v in (*traffic.reads.get(op, ()), *made))
