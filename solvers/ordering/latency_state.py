"""Partial orders of issue and what can be said about their completions."""

from dataclasses import dataclass

from braid.solvers.ordering.latency import LatencyProblem


@dataclass(frozen=True, slots=True)
class IssueState:
    """What the rest depends on once the ops of `ideal` are issued.

    `ends` has the ops that still have successors to issue; `loads` is the work left per unit;
    `bound` holds for every completion.
    """

    ideal: int
    ready: tuple[int, ...]
    free: tuple[float, ...]
    ends: dict[int, float]
    loads: tuple[float, ...]
    bound: float
    op: int
    parent: "IssueState | None"

    def order(self) -> list[int]:
        """Return the ops issued, first to last."""
        order: list[int] = []
        state = self
        while state.parent is not None:
            order.append(state.op)
            state = state.parent
        return order[::-1]


class IssueSearch:
    """Makes the states of one problem."""

    def __init__(self, problem: LatencyProblem) -> None:
        self.problem = problem
        graph = problem.graph
        self.before = [sum(1 << op for op in ops) for ops in graph.predecessors]
        self.after = [sum(1 << op for op in ops) for ops in graph.successors]
        self.follow = [
            max((problem.tails[after] for after in ops), default=0.0) for ops in graph.successors
        ]
        self.work = [[0.0] * problem.unit_count for _ in problem.stages]
        for op, own in enumerate(problem.stages):
            for stage in own:
                self.work[op][stage.unit] += stage.duration

    def root(self) -> IssueState:
        """Return the state before any op is issued."""
        sources = tuple(op for op, before in enumerate(self.before) if not before)
        units = self.problem.unit_count
        loads = tuple(sum(work[unit] for work in self.work) for unit in range(units))
        bound = self.problem.lower_bound()
        return IssueState(0, sources, (0.0,) * units, {}, loads, bound, -1, None)

    def peek(self, state: IssueState, op: int) -> tuple[float, float]:
        """Return the bound and the end of `op` if it were issued next."""
        free = list(state.free)
        ready = 0.0
        ends = state.ends
        for before in self.problem.graph.predecessors[op]:
            if ends[before] > ready:
                ready = ends[before]
        end = self.problem.advance(op, ready, free)
        bound = max(state.bound, end + self.follow[op])
        work = self.work[op]
        for unit, time in enumerate(free):
            left = time + state.loads[unit] - work[unit]
            if left > bound:
                bound = left
        return bound, end

    def issue(self, state: IssueState, op: int) -> IssueState:
        """Return the state after `op`."""
        graph = self.problem.graph
        free = list(state.free)
        ready = max((state.ends[before] for before in graph.predecessors[op]), default=0.0)
        end = self.problem.advance(op, ready, free)
        loads = tuple(a - b for a, b in zip(state.loads, self.work[op], strict=True))
        bound = max(
            state.bound,
            end + self.follow[op],
            max(map(sum, zip(free, loads, strict=True)), default=0),
        )
        ideal = state.ideal | 1 << op
        ends = dict(state.ends)
        for before in graph.predecessors[op]:
            if self.after[before] & ideal == self.after[before]:
                del ends[before]
        if graph.successors[op]:
            ends[op] = end
        now = [other for other in state.ready if other != op]
        now += [a for a in graph.successors[op] if self.before[a] & ideal == self.before[a]]
        return IssueState(ideal, tuple(now), tuple(free), ends, loads, bound, op, state)
