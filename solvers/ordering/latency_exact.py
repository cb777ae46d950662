"""Least makespan by depth-first branch and bound with dominance between equal ideals."""

from time import monotonic

from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.latency_state import IssueSearch, IssueState

MAX_FRONTS = 200_000
"""States remembered for dominance: bounds the memory, not the correctness."""


class BranchAndBound:
    """Finds the least makespan below `value`, the makespan of a known order."""

    def __init__(self, problem: LatencyProblem, value: float, deadline: float) -> None:
        self.search = IssueSearch(problem)
        self.size = len(problem)
        self.value = value
        self.found: list[list[int]] = []
        self.deadline = deadline
        self.fronts: dict[int, list[tuple[float, ...]]] = {}
        self.remembered = 0

    def run(self, good_enough: float = 0.0) -> bool:
        """Search; return whether the search was complete, so that `value` is least."""
        root = self.search.root()
        stack = [root]
        visited = 0
        while stack:
            visited += 1
            if visited % 16 == 0 and monotonic() > self.deadline:
                return False
            state = stack.pop()
            if state.bound >= self.value or self._dominated(state):
                continue
            if state.ideal.bit_count() == self.size:
                self.value = state.bound
                self.found.append(state.order())
                if self.value <= max(root.bound, good_enough):
                    return self.value <= root.bound
                continue
            stack += sorted(self._children(state), key=self._rank, reverse=True)
        return True

    def _children(self, state: IssueState) -> list[IssueState]:
        issued = [self.search.issue(state, op) for op in state.ready]
        return [child for child in issued if child.bound < self.value]

    def _rank(self, state: IssueState) -> tuple[float, float]:
        return state.bound, -self.search.problem.tails[state.op]

    def _dominated(self, state: IssueState) -> bool:
        """Whether some state of the same ideal was no later in anything, else remember it."""
        vector = (*state.free, *(state.ends[op] for op in sorted(state.ends)), state.bound)
        front = self.fronts.setdefault(state.ideal, [])
        for other in front:
            if all(a <= b for a, b in zip(other, vector, strict=True)):
                return True
        if self.remembered < MAX_FRONTS:
            front.append(vector)
            self.remembered += 1
        return False
