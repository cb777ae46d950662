"""When what `Residency` issues for an order is done, each step at once."""

from collections.abc import Sequence

from braid.solvers.ordering import LatencyProblem, Residency
from braid.solvers.ordering.traffic import NO_TRAFFIC


class Clock:
    """Runs steps: a token is the time at which they end."""

    start = 0.0

    def __init__(self, problem: LatencyProblem) -> None:
        self.problem = problem
        self.traffic = problem.traffic or NO_TRAFFIC
        self.first = [sum(self._count(u) for u in range(unit)) for unit in range(64)]
        self.free = [0.0] * self.first[problem.unit_count]

    def _count(self, unit: int) -> int:
        counts = self.problem.counts
        return counts[unit] if unit < len(counts) else 1

    def begin(self, op: int) -> None:
        """Which op it is does not matter."""

    def join(self, first: float, second: float, /) -> float:
        return max(first, second)

    def load(self, value: int, after: float) -> float:
        return self._transfer(self.traffic.load_unit, self.traffic.values[value].load, after)

    def store(self, value: int, after: float) -> float:
        return self._transfer(self.traffic.store_unit, self.traffic.values[value].store, after)

    def _transfer(self, unit: int, duration: float, after: float) -> float:
        alike = range(self.first[unit], self.first[unit + 1])
        slot = min(alike, key=lambda place: self.free[place])
        self.free[slot] = end = max(self.free[slot], after) + duration
        return end

    def overwrite(self, value: int, after: float) -> float:
        return after

    def compute(self, op: int, after: float) -> float:
        end = 0.0
        for stage in self.problem.stages[op]:
            begin = max(end, after) if stage.waits else end
            end = self._transfer(stage.unit, stage.duration, begin)
        return max(end, after)

    def release(self, value: int, after: float) -> None:
        """Room has no time."""


def issued_seconds(problem: LatencyProblem, order: Sequence[int], ahead: int) -> float:
    clock = Clock(problem)
    Residency(problem.graph, clock.traffic, clock, ahead).run(order)
    return max(clock.free, default=0.0)
