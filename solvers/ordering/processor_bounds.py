"""What no schedule on identical processors can be faster than."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from braid.solvers.ordering.graph import Graph

INTERVAL_OPS = 250
"""Of larger graphs only the paths and the work of whole graphs are looked at."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ProcessorBounds:
    """Heads, tails and the bound of a problem; see `ProcessorProblem` for the fields."""

    graph: Graph
    alone: tuple[float, ...]
    together: tuple[float, ...]
    processors: int

    @cached_property
    def shortest(self) -> tuple[float, ...]:
        """The least seconds of each op."""
        return tuple(map(min, zip(self.alone, self.together, strict=True)))

    @cached_property
    def heads(self) -> tuple[float, ...]:
        """The earliest time at which each op can start: the longest path to it."""
        heads = [0.0] * len(self.graph)
        for op in self.graph.topological_order:
            for after in self.graph.successors[op]:
                heads[after] = max(heads[after], heads[op] + self.shortest[op])
        return tuple(heads)

    @cached_property
    def follows(self) -> tuple[float, ...]:
        """The least time from the end of each op to the end of all."""
        follows = [0.0] * len(self.graph)
        for op in reversed(self.graph.topological_order):
            for before in self.graph.predecessors[op]:
                follows[before] = max(follows[before], follows[op] + self.shortest[op])
        return tuple(follows)

    @cached_property
    def tails(self) -> tuple[float, ...]:
        """The least time from the start of each op to the end of all."""
        return tuple(map(sum, zip(self.shortest, self.follows, strict=True)))

    @property
    def critical_path(self) -> float:
        """The longest path."""
        return max(self.tails, default=0.0)

    @property
    def work(self) -> float:
        """The work of all ops, shared by all processors."""
        pairs = zip(self.alone, self.together, strict=True)
        return sum(min(alone / self.processors, together) for alone, together in pairs)

    @cached_property
    def value(self) -> float:
        """The greatest of the longest path, the work, and the work that intervals must hold."""
        bound = max(self.critical_path, self.work)
        if 0 < len(self.graph) <= INTERVAL_OPS:
            bound = max(bound, self._intervals())
        return bound

    def _intervals(self) -> float:
        """The bound of E. B. Fernandez and B. Bussell, "Bounds on the number of processors and
        time for multiprocessor optimal schedules" (IEEE Transactions on Computers, 1973).

        Were the longest path the makespan, an interval in which more than all processors' time
        had to be worked would be too short by the rest: the makespan is that much longer.
        """
        length = self.critical_path
        begins = np.unique(self.heads)
        ends = np.unique(length - np.array(self.follows))
        most = 0.0
        for begin in begins.tolist():
            later = ends[ends > begin]
            work = np.zeros_like(later)
            for op in range(len(self.graph)):
                work += np.minimum(
                    self._least(op, self.alone, begin, later),
                    self._least(op, self.together, begin, later) * self.processors,
                )
            most = max(most, float((work / self.processors - (later - begin)).max(initial=0.0)))
        return length + most

    def _least(self, op: int, seconds: Sequence[float], begin: float, ends: Floats) -> Floats:
        """How long `op` runs at least in the interval from `begin` to each of `ends`."""
        length = self.critical_path
        if not np.isfinite(seconds[op]):
            return np.full_like(ends, np.inf)
        inside = np.minimum(ends - begin, seconds[op])
        inside = np.minimum(inside, self.heads[op] + seconds[op] - begin)
        latest = length - self.follows[op] - seconds[op]
        return np.maximum(np.minimum(inside, ends - latest), 0.0)
