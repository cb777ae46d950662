"""Ops on identical processors that run side by side: P | prec | Cmax in the three-field notation.

An op runs on one processor, or on all of them at once, which is faster by itself but leaves no room
for others (a moldable task). A schedule is an order of ops and which of them run on all processors:
taken in this order, each op starts as early as it can. Ordered by their starts, the ops of every
schedule start no later that way, because at any time no more processors are busy; so an order and a
choice of least makespan are among those that are searched.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.processor_bounds import ProcessorBounds

Choice = tuple[Sequence[int], Sequence[bool]]
"""A topological order, and for each op whether it runs on all processors."""


@dataclass(frozen=True)
class ProcessorProblem:
    """Find the schedule of `graph` on `processors` identical processors with the least makespan.

    `alone` are the seconds of each op on one processor, infinite where it cannot run beside
    others; an op of 0 seconds takes no processor. `together` are those on all processors at once,
    infinite where that is not possible.
    """

    graph: Graph
    alone: tuple[float, ...]
    together: tuple[float, ...]
    processors: int

    def __post_init__(self) -> None:
        if self.processors < 1:
            raise ValueError(f"there are {self.processors} processors, expected at least 1")
        if not len(self.graph) == len(self.alone) == len(self.together):
            raise ValueError(
                f"{len(self.alone)} and {len(self.together)} durations for {len(self.graph)} ops"
            )
        if any(min(pair) < 0 for pair in self._pairs) or not all(map(isfinite, self.shortest)):
            raise ValueError("a duration is negative, or an op has none")

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def _pairs(self) -> Iterable[tuple[float, float]]:
        return zip(self.alone, self.together, strict=True)

    @cached_property
    def shortest(self) -> tuple[float, ...]:
        """The least seconds of each op."""
        return tuple(map(min, self._pairs))

    @cached_property
    def bounds(self) -> ProcessorBounds:
        """What holds for every schedule."""
        return ProcessorBounds(self.graph, self.alone, self.together, self.processors)

    def evaluate(self, choice: Choice) -> float:
        """Return the makespan of a schedule."""
        return self.place(choice).value

    def place(self, choice: Choice) -> "Placed":
        """Return on which processor and when each op runs."""
        order, wide = choice
        free = [0.0] * self.processors
        starts, ends = [0.0] * len(self), [0.0] * len(self)
        processors: list[int | None] = [None] * len(self)
        for op in order:
            ready, near = 0.0, None
            for before in self.graph.predecessors[op]:
                if ends[before] >= ready:
                    ready, near = ends[before], processors[before]
            seconds = self.together[op] if wide[op] else self.alone[op]
            if not seconds:
                starts[op] = ends[op] = ready
            elif wide[op]:
                starts[op] = max(ready, *free)
                ends[op] = starts[op] + seconds
                free = [ends[op]] * self.processors
            else:
                processor = earliest(free, ready, near)
                starts[op] = max(free[processor], ready)
                ends[op] = free[processor] = starts[op] + seconds
                processors[op] = processor
        return Placed(tuple(processors), tuple(starts), max(ends, default=0.0))

    def restrict(self, ops: Sequence[int]) -> "ProcessorProblem":
        """Return the problem of `ops` alone, renumbered by their place in `ops`."""
        alone = tuple(self.alone[op] for op in ops)
        together = tuple(self.together[op] for op in ops)
        return ProcessorProblem(self.graph.restrict(ops), alone, together, self.processors)


@dataclass(frozen=True)
class Placed:
    """The processor of each op, None for all or none; when it starts; when all is done."""

    processors: tuple[int | None, ...]
    starts: tuple[float, ...]
    value: float


def earliest(free: Sequence[float], ready: float, near: int | None) -> int:
    """Return the processor on which an op that is `ready` starts first.

    Of several it is the one `near`, whose caches hold what the op reads, or else the one that has
    been idle for the shortest time.
    """
    if near is not None and free[near] <= ready:
        return near
    idle = [processor for processor, time in enumerate(free) if time <= ready]
    if idle:
        return max(idle, key=free.__getitem__)
    return min(range(len(free)), key=free.__getitem__)
