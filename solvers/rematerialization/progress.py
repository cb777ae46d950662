"""The state that the improving and the proving side of the solver share."""

from collections.abc import Sequence

from ortools.sat.python import cp_model

from braid.solvers.deadline import Deadline
from braid.solvers.rematerialization.cp_sat import Limits, Outcome, run_cp_sat
from braid.solvers.rematerialization.problem import Problem
from braid.solvers.rematerialization.scaling import Scale
from braid.solvers.rematerialization.simulate import simulate


class Progress:
    """The best schedule and the best lower bound so far, and the time that is left.

    `ticks` and `bound` are in scaled durations (see `Scale`). Both sides only ever tighten it, so
    two threads may share one.
    """

    def __init__(
        self,
        problem: Problem,
        budget: int,
        sequence: Sequence[int],
        deadline: Deadline,
        *,
        fixed_order: bool = False,
    ) -> None:
        self.problem = problem
        self.budget = budget
        self.until = deadline
        self.fixed_order = fixed_order
        self.scale = Scale.of(problem, budget)
        self.sequence = tuple(sequence)
        self.ticks = self._ticks(sequence)
        self.bound: float = sum(self.scale.durations[op] for op in problem.required)
        self._running: list[cp_model.CpSolver] = []

    def _ticks(self, sequence: Sequence[int]) -> int:
        return sum(self.scale.durations[op] for op in sequence)

    @property
    def closed(self) -> bool:
        """True if the best schedule is proven optimal (up to the rounding of durations)."""
        return self.ticks <= self.bound

    @property
    def remaining(self) -> float:
        """Seconds left."""
        return self.until.remaining

    def offer(self, sequence: Sequence[int]) -> bool:
        """Take `sequence` if it is better and keeps the budget; return whether it was taken."""
        if self._ticks(sequence) >= self.ticks:
            return False
        if simulate(self.problem, sequence).peak > self.budget:
            return False
        self.sequence, self.ticks = tuple(sequence), self._ticks(sequence)
        self._stop_when_closed()
        return True

    def raise_bound(self, ticks: float) -> None:
        """Record that no schedule takes less than `ticks`."""
        self.bound = max(self.bound, ticks)
        self._stop_when_closed()

    def minimize(self, model: cp_model.CpModel, seconds: float, seed: int) -> Outcome:
        """Minimize `model` for at most `seconds`, or until the schedule is proven optimal."""
        solver = cp_model.CpSolver()
        self._running.append(solver)
        try:
            return run_cp_sat(solver, model, Limits(min(seconds, self.remaining), seed=seed))
        finally:
            self._running.remove(solver)

    def _stop_when_closed(self) -> None:
        if self.closed:
            for solver in tuple(self._running):
                solver.stop_search()
