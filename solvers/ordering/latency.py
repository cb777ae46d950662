"""The latency objective: when ops issued in an order finish on units that run side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.latency_timeline import Timeline
from braid.solvers.ordering.native import NativeChip
from braid.solvers.ordering.residency_plan import AHEADS
from braid.solvers.ordering.slots import Slots
from braid.solvers.ordering.traffic import Traffic

if TYPE_CHECKING:
    from braid.solvers.ordering.latency_bounds import LatencyBounds


@dataclass(frozen=True)
class UnitStage:
    """A part of an op: `duration` seconds on one unit of the kind `unit`.

    `waits` says whether it needs the op's predecessors; loading weights does not.
    """

    unit: int
    duration: float
    waits: bool = True


@dataclass(frozen=True)
class LatencyProblem:
    """Find the order of issue of `graph` with the least makespan.

    The stages of an op run one after the other. Every unit executes its stages in the order in
    which they are issued (op by op) and waits for what a stage depends on. An op's successors
    wait for its last stage. Where there is `traffic`, loads, spills and stores come on top, as
    the order makes them necessary (see `residency_plan`).

    There are `counts` units of each kind, by default 1. A stage goes to the one
    that is the first to be free.
    """

    graph: Graph
    stages: tuple[tuple[UnitStage, ...], ...]
    traffic: Traffic | None = None
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.stages) != len(self.graph):
            raise ValueError(f"stages of {len(self.stages)} ops for {len(self.graph)} ops")
        if any(s.duration < 0 or s.unit < 0 for op in self.stages for s in op):
            raise ValueError("a stage has a negative duration or unit")
        if any(count < 1 for count in self.counts):
            raise ValueError("there is a kind without units")

    def __len__(self) -> int:
        return len(self.graph)

    @cached_property
    def unit_count(self) -> int:
        """The number of kinds of units."""
        moving = (self.traffic.load_unit, self.traffic.store_unit) if self.traffic else ()
        return 1 + max((*moving, *(s.unit for op in self.stages for s in op)), default=-1)

    @cached_property
    def slots(self) -> Slots:
        """The units of each kind."""
        return Slots.of(self.counts, self.unit_count)

    @cached_property
    def plain(self) -> tuple[tuple[tuple[int, float, bool], ...], ...]:
        """The stages as tuples, for inner loops."""
        return tuple(tuple((s.unit, s.duration, s.waits) for s in op) for op in self.stages)

    def advance(self, op: int, ready: float, free: list[float]) -> float:
        """Issue `op` whose predecessors end at `ready`; update `free`, return when it ends."""
        end = 0.0
        for unit, duration, waits in self.plain[op]:
            slot = self.slots.first_free(unit, free)
            start = free[slot] if free[slot] > end else end
            if waits and ready > start:
                start = ready
            end = start + duration
            free[slot] = end
        return end if end > ready else ready

    def evaluate(self, order: Sequence[int]) -> float:
        """Return the makespan of `order`, with loads ahead or, where that is faster, without.

        Raises ValueError where the values of an op do not fit the capacity.
        """
        if self.traffic is not None:
            return min(self.seconds(order, ahead) for ahead in self.aheads)
        free = [0.0] * len(self.slots)
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
    def aheads(self) -> tuple[int, ...]:
        """Numbers of ops by which loads may come early.

        Bounds of partial orders (`latency_ideals`) take it that the unit that loads does this in
        the order of the ops, and that only stores come between.
        """
        if self.traffic is None:
            return (0,)
        computing = {s.unit for op in self.stages for s in op}
        return (0,) if self.traffic.load_unit in computing else AHEADS

    def ahead(self, order: Sequence[int]) -> int:
        """Return by how many ops the loads of `order` are to come early, 0 if that does not pay.

        Raises ValueError where the values of an op do not fit the capacity.
        """
        if len(self.aheads) == 1:
            return 0
        return min(self.aheads, key=lambda ahead: self.seconds(order, ahead))

    def seconds(self, order: Sequence[int], ahead: int) -> float:
        """Return the makespan of `order` where loads come this many ops early."""
        return self.timeline(ahead).seconds(order)

    def timeline(self, ahead: int) -> Timeline:
        """Return what makes schedules with loads this many ops early."""
        if ahead not in self._timelines:
            self._timelines[ahead] = Timeline(self._native, ahead)
        return self._timelines[ahead]

    @cached_property
    def _native(self) -> NativeChip:
        return NativeChip(self.graph, self.plain, self.traffic, self.slots, self.unit_count)

    @cached_property
    def _timelines(self) -> dict[int, Timeline]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """Return the fields; derived values are computed anew in another process."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def bounds(self) -> "LatencyBounds":
        """Return the bounds that hold for every order."""
        from braid.solvers.ordering.latency_bounds import (
            LatencyBounds,  # large, and for chips alone
        )

        return LatencyBounds(self.graph, self.plain, self.traffic, self.slots)

    @property
    def tails(self) -> Sequence[float]:
        """The least time from when an op's waiting stages may start until all that follows ends."""
        return self.bounds.tails

    def lower_bound(self, deadline: float = inf) -> float:
        """Return what no order is faster than; a quick bound once `deadline` has passed."""
        return self.bounds.value if monotonic() < deadline else self.bounds.quick


def restrict(problem: LatencyProblem, ops: Sequence[int]) -> LatencyProblem:
    """Return the problem of ordering `ops` alone, renumbered by their place in `ops`."""
    traffic = problem.traffic
    if traffic is not None:
        traffic = traffic.restrict({op: place for place, op in enumerate(ops)})
    stages = tuple(problem.stages[op] for op in ops)
    return LatencyProblem(problem.graph.restrict(ops), stages, traffic, problem.counts)
