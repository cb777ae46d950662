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
        self.free = [0.0] * problem.unit_count

    def begin(self, op: int) -> None:
        """Which op it is does not matter."""

    def join(self, first: float, second: float, /) -> float:
        return max(first, second)

    def load(self, value: int, after: float) -> float:
        return self._transfer(self.traffic.load_unit, self.traffic.values[value].load, after)

    def store(self, value: int, after: float) -> float:
        return self._transfer(self.traffic.store_unit, self.traffic.values[value].store, after)

    def _transfer(self, unit: int, duration: float, after: float) -> float:
        self.free[unit] = end = max(self.free[unit], after) + duration
        return end

    def overwrite(self, value: int, after: float) -> float:
        return after

    def compute(self, op: int, after: float) -> float:
        return self.problem.advance(op, after, self.free)

    def release(self, value: int, after: float) -> None:
        """Room has no time."""


def issued_seconds(problem: LatencyProblem, order: Sequence[int], ahead: int) -> float:
    clock = Clock(problem)
    Residency(problem.graph, clock.traffic, clock, ahead).run(order)
    return max(clock.free, default=0.0)
