"""The latency objective: when ops issued in an order finish on units that run side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from math import inf

from braid.solvers.ordering.graph import Graph


@dataclass(frozen=True)
class Stage:
    """A part of an op: `duration` seconds on `unit`.

    `waits` tells whether it needs the op's predecessors; loading weights does not.
    """

    unit: int
    duration: float
    waits: bool = True


@dataclass(frozen=True)
class LatencyProblem:
    """Find the order of issue of `graph` with the least makespan.

    The stages of an op run one after the other. Every unit executes its stages in the order in
    which they are issued (op by op) and waits for what a stage depends on. An op's successors
    wait for its last stage.
    """

    graph: Graph
    stages: tuple[tuple[Stage, ...], ...]

    def __post_init__(self) -> None:
        if len(self.stages) != len(self.graph):
            raise ValueError(f"stages of {len(self.stages)} ops for {len(self.graph)} ops")
        if any(s.duration < 0 or s.unit < 0 for op in self.stages for s in op):
            raise ValueError("a stage has a negative duration or unit")

    def __len__(self) -> int:
        return len(self.graph)

    @cached_property
    def unit_count(self) -> int:
        """The number of units."""
        return 1 + max((s.unit for op in self.stages for s in op), default=-1)

    @cached_property
    def plain(self) -> tuple[tuple[tuple[int, float, bool], ...], ...]:
        """The stages as tuples, for inner loops."""
        return tuple(tuple((s.unit, s.duration, s.waits) for s in op) for op in self.stages)

    def advance(self, op: int, ready: float, free: list[float]) -> float:
        """Issue `op` whose predecessors end at `ready`; update `free`, return when it ends."""
        end = 0.0
        for unit, duration, waits in self.plain[op]:
            start = free[unit] if free[unit] > end else end
            if waits and ready > start:
                start = ready
            end = start + duration
            free[unit] = end
        return end if end > ready else ready

    def evaluate(self, order: Sequence[int]) -> float:
        """Return the makespan of `order`."""
        free = [0.0] * self.unit_count
        ends = [0.0] * len(self)
        predecessors = self.graph.predecessors
        last = 0.0
        for op in order:
            ready = 0.0
            for before in predecessors[op]:
                if ends[before] > ready:
                    ready = ends[before]
            ends[op] = end = self.advance(op, ready, free)
            if end > last:
                last = end
        return last

    @cached_property
    def heads(self) -> tuple[float, ...]:
        """The earliest time at which each op's predecessors can have ended."""
        heads = [0.0] * len(self)
        for op in self.graph.topological_order:
            end = self.advance(op, heads[op], [0.0] * self.unit_count)
            for after in self.graph.successors[op]:
                heads[after] = max(heads[after], end)
        return tuple(heads)

    @cached_property
    def tails(self) -> tuple[float, ...]:
        """The least time from when an op's waiting stages may start until all that follows ends."""
        tails = [0.0] * len(self)
        for op in reversed(self.graph.topological_order):
            follow = max((tails[after] for after in self.graph.successors[op]), default=0.0)
            own = self.stages[op]
            first = next((k for k, stage in enumerate(own) if stage.waits), len(own))
            tails[op] = follow + sum(stage.duration for stage in own[first:])
        return tuple(tails)

    def lower_bound(self) -> float:
        """Return the greatest of the critical path and the bound of every unit on its own."""
        path = max((h + t for h, t in zip(self.heads, self.tails, strict=True)), default=0.0)
        return max(path, max(map(self._unit_bound, range(self.unit_count)), default=0.0))

    def _unit_bound(self, unit: int) -> float:
        """Return the least makespan if only `unit` were scarce and stages could be interrupted."""
        jobs: list[tuple[float, float, float]] = []
        for op, own in enumerate(self.stages):
            follow = max((self.tails[after] for after in self.graph.successors[op]), default=0.0)
            head = 0.0
            for place, stage in enumerate(own):
                head = max(head, self.heads[op]) if stage.waits else head
                if stage.unit == unit:
                    rest = follow + sum(later.duration for later in own[place + 1 :])
                    jobs.append((head, stage.duration, rest))
                head += stage.duration
        return one_machine_bound(jobs)


def one_machine_bound(jobs: Sequence[tuple[float, float, float]]) -> float:
    """Return the makespan of `jobs`, (head, duration, tail), on one machine with preemption.

    Jackson's schedule: at any time, of the jobs whose head has passed, that of the longest tail
    runs. (Carlier, "The one-machine sequencing problem", EJOR 1982.)
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


def restrict(problem: LatencyProblem, ops: Sequence[int]) -> LatencyProblem:
    """Return the problem of ordering `ops` alone, renumbered by their place in `ops`."""
    return LatencyProblem(problem.graph.restrict(ops), tuple(problem.stages[op] for op in ops))
