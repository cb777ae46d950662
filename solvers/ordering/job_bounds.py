"""A bound on makespans from the least time between any two jobs.

A job waits until all its predecessors on one unit have run one after the other, plus the least
delay between the last of them and the job. Taken over those that start late, this adds up from one
layer of a model to the next, where every tile of a layer waits for all of those before it: the
heads and tails of J. Carlier, "The one-machine sequencing problem", EJOR 1982, adjusted by the sets
of J. Carlier and E. Pinson, "An algorithm for solving the job-shop problem", Management Science
1989. If loads are needed between ops of a set (see `job_graph`), the set takes at least their work
and setups. Loads that are needed after the last of them precede the job as well (see `reloads`).
Two units together have a bound of their own (see `upstream_units`). The units of a kind count as a
single unit that is as fast as all of them together (see `latency_bounds`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import inf

import numpy as np
from numpy.typing import NDArray

from braid.solvers.ordering.job_graph import NO_UNIT, JobGraph, Setup, one_machine_bound
from braid.solvers.ordering.reloads import Reloads
from braid.solvers.ordering.upstream_units import Side, upstream_unit_bound

MAX_JOBS = 5000
"""The table of distances between jobs takes 8 bytes for each two of them, and seconds to fill."""

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class JobBounds:
    """The bound of one graph with at most `MAX_JOBS` jobs."""

    jobs: JobGraph
    setups: Mapping[int, Setup]
    """The setups, by op."""
    reloads: Reloads | None = None
    counts: Sequence[int] = ()
    """The number of units by kind, by default 1."""

    @cached_property
    def value(self) -> float:
        """Seconds that no order is below."""
        if not len(self.jobs):
            return 0.0
        seconds = np.array(self.jobs.seconds)
        distances, raised = self._distances(seconds)
        jobs = range(len(self.jobs))
        heads = self._heads(
            self.jobs.predecessors,
            jobs,
            seconds,
            distances,
            [self.reloads.operands(job) if self.reloads else () for job in jobs],
            self.reloads,
        )
        tails = self._heads(
            _reversed(self.jobs.predecessors),
            reversed(jobs),
            seconds,
            np.ascontiguousarray(distances.T),
            [(job,) if raised[job] else () for job in jobs],
        )
        bounds = [float((heads + seconds + tails).max())]
        work = self._shared
        sides = [Side(heads[own], work[own], tails[own]) for own in self._by_unit]
        bounds += [one_machine_bound(side.jobs) for side in sides]
        known = max(bounds)
        for (ops, own), (upstream, other) in permutations(
            zip(sides, self._by_unit, strict=True), 2
        ):
            known = upstream_unit_bound(ops, upstream, distances[np.ix_(own, other)] > -inf, known)
        return known

    @cached_property
    def _by_unit(self) -> list[Indices]:
        units = np.array(self.jobs.units)
        return [np.flatnonzero(units == unit) for unit in sorted({*self.jobs.units} - {NO_UNIT})]

    @cached_property
    def _shared(self) -> Floats:
        """The seconds of each job where all units of its kind work on it."""
        many = [
            self.counts[unit] if 0 <= unit < len(self.counts) else 1 for unit in self.jobs.units
        ]
        return np.array(self.jobs.seconds) / np.array(many)

    @cached_property
    def _groups(self) -> list[tuple[NDArray[np.bool_], Indices, Floats]]:
        """The jobs of each group of setups, with the own operand and the setup of each job."""
        size = len(self.jobs)
        found: dict[int, tuple[NDArray[np.bool_], Indices, Floats]] = {}
        for op, setup in self.setups.items():
            empty = np.zeros(size, bool), np.zeros(size, np.intp), np.zeros(size)
            jobs, operands, seconds = found.setdefault(setup.group, empty)
            job = self.jobs.ops[op]
            jobs[job], operands[job], seconds[job] = True, setup.operand, setup.seconds
        return list(found.values())

    def _distances(self, seconds: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return per job the least time from the end of each ancestor to its start, or -inf.

        Also finds which jobs are followed by more than the longest path.
        """
        size = len(self.jobs)
        table, raised = np.full((size, size), -inf), np.zeros(size, bool)
        for job, predecessors in enumerate(self.jobs.predecessors):
            row = table[job]
            for before in predecessors:
                np.maximum(row, table[before] + seconds[before], out=row)
                row[before] = max(row[before], 0.0)
            waits = self.reloads.waits_after(job, table) if self.reloads else None
            if waits is not None:
                raised |= waits > row
                np.maximum(row, waits, out=row)
        return table, raised

    def _heads(
        self,
        predecessors: Sequence[Sequence[int]],
        order: Iterable[int],
        seconds: Floats,
        distances: Floats,
        marks: Sequence[tuple[int, ...]],
        reloads: Reloads | None = None,
    ) -> Floats:
        """Return the earliest start of each job; those of the same predecessors and marks
        together.
        """
        heads = np.zeros(len(self.jobs))
        known: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        for job in order:
            before = predecessors[job]
            key = tuple(before), marks[job]
            if key not in known:
                head = max(0.0, float((heads + seconds + distances[job]).max()))
                if len(before) > 1:
                    head = max(head, self._after_all(job, distances[job], heads, reloads))
                known[key] = head
            heads[job] = known[key]
        return heads

    def _after_all(
        self,
        job: int,
        distance: Floats,
        heads: Floats,
        reloads: Reloads | None,
    ) -> float:
        """Return when the jobs at a `distance` are done, each unit's from some head on at a
        time.
        """
        latest = 0.0
        for own in self._by_unit:
            found = own[distance[own] > -inf]
            if len(found):
                found = found[np.argsort(-heads[found], kind="stable")]
                work = self._work(found, self._shared)
                gap = np.minimum.accumulate(distance[found])
                waits = reloads.waits(job, found) if reloads else None
                if waits is not None:
                    gap = np.maximum(gap, waits)
                latest = max(latest, float((heads[found] + work + gap).max()))
        return latest

    def _work(self, found: Indices, seconds: Floats) -> Floats:
        """Return the least time for the first of `found`, jobs of one unit; for the first two; and
        on.
        """
        work = np.cumsum(seconds[found])
        for jobs, operands, setups in self._groups:
            own = jobs[found]
            if own.sum() > 1:
                _, first = np.unique(np.where(own, operands[found], -1), return_index=True)
                fresh = np.zeros(len(found))
                fresh[first] = setups[found[first]]
                waits = np.cumsum(fresh) - np.maximum.accumulate(fresh)
                work = np.maximum(work, np.cumsum(np.where(own, seconds[found], 0.0)) + waits)
        return work


def _reversed(predecessors: Sequence[Sequence[int]]) -> list[list[int]]:
    successors: list[list[int]] = [[] for _ in predecessors]
    for job, before in enumerate(predecessors):
        for other in before:
            successors[other].append(job)
    return successors
