"""Compute lower bounds on the time of every order of issue, before any is searched.

Every unit is a machine that executes its stages one at a time, each with a head (the earliest time
at which it can start) and a tail (the least time from its end to the end of all). Heads and tails
grow by the needs of all ancestors or descendants of an op on one unit; Jackson's preemptive
schedule then bounds every unit (J. Carlier, "The one-machine sequencing problem", EJOR 1982).

Units that share their work count as one machine that is as fast as all of them: with preemption it
can do in turn whatever they do at the same time. A job then takes its part of the machine's time,
but in a path the time that it takes on one unit (compare J. Carlier, E. Pinson, "Jackson's
pseudo-preemptive schedule for the Pm/ri,qi/Cmax scheduling problem", 1998).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.job_bounds import MAX_JOBS, JobBounds
from braid.solvers.ordering.job_graph import Job, JobGraph, one_machine_bound, setups
from braid.solvers.ordering.reloads import Reloads
from braid.solvers.ordering.slots import Slots
from braid.solvers.ordering.traffic import Traffic

MAX_CLOSURE = 2500
"""Graphs of more ops have heads and tails from paths alone: the closure is quadratic."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatencyBounds:
    """Heads, tails and the bound of one problem; `stages` are (kind of unit, seconds, waits)."""

    graph: Graph
    stages: tuple[tuple[tuple[int, float, bool], ...], ...]
    traffic: Traffic | None
    slots: Slots

    @cached_property
    def leaves(self) -> tuple[tuple[float, tuple[int, ...]], ...]:
        """The seconds of each load that every order needs, and the ops that wait for it."""
        values = self.traffic.values if self.traffic else ()
        return tuple((v.load, v.consumers) for v in values if v.is_leaf)

    @cached_property
    def stores(self) -> tuple[float, ...]:
        """The seconds of the longest store after each op."""
        found = [0.0] * len(self.graph)
        for value in self.traffic.values if self.traffic else ():
            if value.output and value.producer is not None:
                found[value.producer] = max(found[value.producer], value.store)
        return tuple(found)

    @cached_property
    def waiting(self) -> tuple[float, ...]:
        """The seconds from when an op's waiting stages may start until its end."""
        found: list[float] = []
        for own in self.stages:
            first = next((k for k, stage in enumerate(own) if stage[2]), len(own))
            found.append(sum(duration for _, duration, _ in own[first:]))
        return tuple(found)

    @cached_property
    def _closure(self) -> NDArray[np.bool_] | None:
        """Row op: its ancestors."""
        size = len(self.graph)
        if size > MAX_CLOSURE:
            return None
        closure = np.zeros((size, size), dtype=bool)
        for op in self.graph.topological_order:
            for before in self.graph.predecessors[op]:
                closure[op, :] |= closure[before, :]
                closure[op, before] = True
        return closure

    @cached_property
    def _work(self) -> Floats:
        """Seconds of each op on the units of each kind together."""
        work = np.zeros((len(self.graph), len(self.slots.counts)))
        for op, own in enumerate(self.stages):
            for unit, duration, _ in own:
                work[op, unit] += duration / self.slots.counts[unit]
        return work

    def _loaded(self, closure: NDArray[np.bool_]) -> Floats:
        """Return the seconds of loading before each op can start: what it or its ancestors read."""
        total = np.zeros(len(self.graph))
        for seconds, users in self.leaves:
            needs: NDArray[np.bool_] = np.any(closure[:, list(users)], axis=1)
            needs[list(users)] = True
            total += seconds * needs
        return total

    @cached_property
    def heads(self) -> tuple[float, ...]:
        """The earliest time at which each op's waiting stages can start."""
        floor = np.zeros(len(self.graph))
        for seconds, users in self.leaves:
            floor[list(users)] = np.maximum(floor[list(users)], seconds)
        if self._closure is not None:
            before = self._closure.astype(np.float64) @ self._work
            if self.traffic:
                unit = self.traffic.load_unit
                before[:, unit] += self._loaded(self._closure) / self.slots.counts[unit]
            floor = np.maximum(floor, before.max(axis=1, initial=0.0))
        heads: list[float] = floor.tolist()
        for op in self.graph.topological_order:
            end = self._end(op, heads[op])
            for after in self.graph.successors[op]:
                heads[after] = max(heads[after], end)
        return tuple(heads)

    def _end(self, op: int, head: float) -> float:
        end = 0.0
        for _, duration, waits in self.stages[op]:
            end = (max(end, head) if waits else end) + duration
        return max(end, head)

    @cached_property
    def follows(self) -> tuple[float, ...]:
        """The least time from the end of each op to the end of all."""
        floor = np.zeros(len(self.graph))
        if self._closure is not None:
            waiting = np.zeros_like(self._work)
            for op, own in enumerate(self.stages):
                for unit, duration, waits in own:
                    waiting[op, unit] += duration / self.slots.counts[unit] if waits else 0.0
            floor = (self._closure.T.astype(np.float64) @ waiting).max(axis=1, initial=0.0)
        follows = np.maximum(floor, self.stores).tolist()
        for op in reversed(self.graph.topological_order):
            for after in self.graph.successors[op]:
                follows[op] = max(follows[op], self.waiting[after] + follows[after])
        return tuple(follows)

    @cached_property
    def tails(self) -> tuple[float, ...]:
        """The least time from when an op's waiting stages may start until all that follows ends."""
        return tuple(own + after for own, after in zip(self.waiting, self.follows, strict=True))

    @cached_property
    def value(self) -> float:
        """The greatest of the critical path, the bound of every unit, and the bound of all jobs."""
        jobs = JobGraph.of(self.graph, self.stages, self.traffic)
        counts = self.slots.counts
        waits = setups(self.stages, self.traffic) if self.traffic else {}
        # Ops of several units are not in a sequence.
        waits = {op: setup for op, setup in waits.items() if counts[self.stages[op][0][0]] == 1}
        reloads = (
            Reloads(jobs, self.traffic, counts[self.traffic.load_unit]) if self.traffic else None
        )
        between = JobBounds(jobs, waits, reloads, counts).value if len(jobs) <= MAX_JOBS else 0.0
        return max(self.quick, between)

    @cached_property
    def quick(self) -> float:
        """The greatest of the critical path and the bound of every unit: `value` takes longer."""
        path = max((h + t for h, t in zip(self.heads, self.tails, strict=True)), default=0.0)
        units = range(len(self.slots.counts))
        return max([path, *(one_machine_bound(self.jobs(unit)) for unit in units)])

    def jobs(self, unit: int) -> list[Job]:
        """Return the work that the units of a kind execute in every order, as if they were a single
        unit."""
        jobs: list[Job] = []
        for op, own in enumerate(self.stages):
            head = 0.0
            for place, (where, duration, waits) in enumerate(own):
                head = max(head, self.heads[op]) if waits else head
                if where == unit:
                    rest = sum(seconds for _, seconds, _ in own[place + 1 :])
                    jobs.append((head, duration, self.follows[op] + rest))
                head += duration
        count = self.slots.counts[unit]
        return [
            (head, seconds / count, tail) for head, seconds, tail in (*jobs, *self._transfers(unit))
        ]

    def _transfers(self, unit: int) -> list[Job]:
        jobs: list[Job] = []
        if self.traffic and unit == self.traffic.load_unit:
            jobs += [(0.0, s, max(self.tails[op] for op in users)) for s, users in self.leaves]
            jobs.append((0.0, self.traffic.excess, 0.0))
        if self.traffic and unit == self.traffic.store_unit:
            for value in self.traffic.values:
                if value.output and value.producer is not None:
                    op = value.producer
                    jobs.append((self._end(op, self.heads[op]), value.store, 0.0))
        return jobs
