"""Least makespan over partial orders of issue: branch and bound, and beams.

Only unavoidable traffic is included here: a load of each leaf value at its first reader and a store
of each output. Spills are not included, so the result is a lower bound. If one unit does both,
loads may precede stores of earlier ops: they do not wait for each other here, but their times add
up. Of several units that share their work it does not matter which is free when, so that their
times are kept ascending.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.slots import least_end

_Job = tuple[int, float, float]
"""The ops with any of which it is done, seconds, and tail."""


@dataclass(frozen=True, slots=True)
class IssueState:
    """The state on which the rest depends once the ops of `ideal` are issued.

    `ends` has the ops that still have successors to issue, and under -1 - leaf the loads that
    still have readers; `bound` holds for every completion.
    """

    ideal: int
    ready: tuple[int, ...]
    free: tuple[float, ...]
    ends: dict[int, float]
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
        self.follow = problem.bounds.follows
        leaves = problem.bounds.leaves
        self.readers = [sum(1 << op for op in users) for _, users in leaves]
        self.leaves: list[list[tuple[int, float]]] = [[] for _ in problem.stages]
        for leaf, (seconds, users) in enumerate(leaves):
            for op in users:
                self.leaves[op].append((leaf, seconds))
        traffic, slots = problem.traffic, problem.slots
        one_way = traffic is not None and traffic.load_unit == traffic.store_unit
        self.apart = range(0)
        """The places in `IssueState.free` of the times of stores that no load waits for."""
        if traffic is not None and one_way and len(problem.aheads) > 1:
            self.apart = range(len(slots), len(slots) + slots.counts[traffic.store_unit])
        self.shared = [units for units in (*slots.ranges, self.apart) if len(units) > 1]
        self.jobs = [self._jobs(unit) for unit in range(problem.unit_count)]
        self.stores: list[list[float]] = [[] for _ in problem.stages]
        for value in problem.traffic.values if problem.traffic else ():
            if value.output and value.producer is not None:
                self.stores[value.producer].append(value.store)

    def _jobs(self, unit: int) -> list[_Job]:
        """Return the work of `unit`: the ops with any of which it ends, seconds, and tail.

        Longest tails first: Jackson's schedule of jobs that are all ready.
        """
        problem, jobs = self.problem, list[_Job]()
        for op, own in enumerate(problem.plain):
            rest = sum(duration for _, duration, _ in own)
            for where, duration, _ in own:
                rest -= duration
                if where == unit:
                    jobs.append((1 << op, duration, self.follow[op] + rest))
        traffic = problem.traffic
        if traffic is not None and unit == traffic.load_unit:
            tails = problem.tails
            for (seconds, users), readers in zip(problem.bounds.leaves, self.readers, strict=True):
                jobs.append((readers, seconds, max(tails[op] for op in users)))
        if traffic is not None and unit == traffic.store_unit:
            made = [v for v in traffic.values if v.output and v.producer is not None]
            jobs += [
                (0 if self.apart else 1 << v.producer, v.store, 0.0)
                for v in made
                if v.producer is not None
            ]
        return sorted(jobs, key=lambda job: -job[2])

    def root(self) -> IssueState:
        """Return the state before any op is issued."""
        sources = tuple(op for op, before in enumerate(self.before) if not before)
        units = len(self.problem.slots) + len(self.apart)
        return IssueState(0, sources, (0.0,) * units, {}, self.problem.lower_bound(), -1, None)

    def peek(self, state: IssueState, op: int) -> tuple[float, float]:
        """Return a bound and the end of `op` if it were issued next."""
        free = list(state.free)
        end = self._advance(state, op, free, None)
        return max(state.bound, end + self.follow[op]), end

    def issue(self, state: IssueState, op: int) -> IssueState:
        """Return the state after `op`."""
        graph = self.problem.graph
        free, ends = list(state.free), dict(state.ends)
        end = self._advance(state, op, free, ends)
        ideal = state.ideal | 1 << op
        for before in graph.predecessors[op]:
            if self.after[before] & ideal == self.after[before]:
                del ends[before]
        for leaf, _ in self.leaves[op]:
            if self.readers[leaf] & ideal == self.readers[leaf]:
                del ends[-1 - leaf]
        if graph.successors[op]:
            ends[op] = end
        ready = [other for other in state.ready if other != op]
        ready += [a for a in graph.successors[op] if self.before[a] & ideal == self.before[a]]
        for units in self.shared:
            free[units.start : units.stop] = sorted(free[units.start : units.stop])
        bound = max(state.bound, end + self.follow[op], *self._unit_bounds(ideal, free))
        return IssueState(ideal, tuple(ready), tuple(free), ends, bound, op, state)

    def _advance(
        self, state: IssueState, op: int, free: list[float], ends: dict[int, float] | None
    ) -> float:
        """Issue `op` with its loads and stores; note in `ends` when the loads end."""
        ready, known = 0.0, state.ends
        for before in self.problem.graph.predecessors[op]:
            if known[before] > ready:
                ready = known[before]
        for leaf, seconds in self.leaves[op]:
            loaded = known.get(-1 - leaf)
            if loaded is None:
                assert self.problem.traffic is not None
                unit = self.problem.slots.first_free(self.problem.traffic.load_unit, free)
                free[unit] = loaded = free[unit] + seconds
                if ends is not None:
                    ends[-1 - leaf] = loaded
            if loaded > ready:
                ready = loaded
        end = self.problem.advance(op, ready, free)
        for seconds in self.stores[op]:
            assert self.problem.traffic is not None
            if self.apart:
                unit = min(self.apart, key=free.__getitem__)
            else:
                unit = self.problem.slots.first_free(self.problem.traffic.store_unit, free)
            free[unit] = max(free[unit], end) + seconds
        return end

    def _unit_bounds(self, ideal: int, free: Sequence[float]) -> Sequence[float]:
        bounds: list[float] = [max(free)]
        for units, jobs in zip(self.problem.slots.ranges, self.jobs, strict=True):
            time = bound = free[units.start]
            if len(units) > 1:
                bounds.append(self._bound_of_many(ideal, free[units.start : units.stop], jobs))
                continue
            for done, seconds, tail in jobs:
                if not ideal & done:
                    time += seconds
                    if time + tail > bound:
                        bound = time + tail
            bounds.append(bound)
        return bounds

    def _bound_of_many(self, ideal: int, free: Sequence[float], jobs: Sequence[_Job]) -> float:
        """Return when units that are `free` ascending can have done what is left of `jobs`."""
        work = bound = 0.0
        for done, seconds, tail in jobs:
            if not ideal & done:
                work += seconds
                bound = max(bound, least_end(free, work) + tail)
        return bound


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
        """Return whether some state of the same ideal was no later in anything, else
        remember it.
        """
        vector = (*state.free, *(state.ends[op] for op in sorted(state.ends)), state.bound)
        front = self.fronts.setdefault(state.ideal, [])
        for other in front:
            if all(a <= b for a, b in zip(other, vector, strict=True)):
                return True
        if self.remembered < MAX_FRONTS:
            front.append(vector)
            self.remembered += 1
        return False


def beam_search(problem: LatencyProblem, width: int, deadline: float) -> list[int] | None:
    """Return the order found with `width` partial orders at a time, None at `deadline`."""
    search = IssueSearch(problem)
    tails = problem.tails
    beam: list[IssueState] = [search.root()]
    for _ in range(len(problem)):
        candidates: list[tuple[float, float, int, int, int]] = []
        for place, state in enumerate(beam):
            if monotonic() > deadline:
                return None
            for op in state.ready:
                bound, end = search.peek(state, op)
                candidates.append((bound, end - tails[op], place, op, state.ideal | 1 << op))
        following: list[IssueState] = []
        seen: set[tuple[int, tuple[float, ...]]] = set()
        for _, _, place, op, _ in sorted(candidates):
            state = search.issue(beam[place], op)
            if (state.ideal, state.free) not in seen:
                seen.add((state.ideal, state.free))
                following.append(state)
            if len(following) == width:
                break
        beam = following
    return min(beam, key=lambda state: state.bound).order()
