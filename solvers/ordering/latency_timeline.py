"""An order of issue on a chip that is changed a window at a time.

The same schedule as `residency` makes, step by step, with copies of its state every `SPACING`
ops; what runs is as many ops behind what is planned as loads come early. After a change the
schedule continues from the copy before it, and ends as soon as it is seen to be no better. What
was evicted or loaded before the window may have been chosen by uses inside of it, so that the
time of a change is an estimate until the schedule is made anew (`reset`).
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.residency_plan import Planner, PlanState, Step
from braid.solvers.ordering.traffic import NO_TRAFFIC

SPACING = 8
SETTLED = 16 * SPACING
"""Ops behind a change after which a delay of the busiest unit is taken to stay."""
TOLERANCE = 1e-12


@dataclass(slots=True)
class _State:
    """When units, values and ops are done; `since` and `until` have what is on the chip."""

    plan: PlanState
    free: list[float]
    ends: list[float]
    since: dict[int, float]
    until: dict[int, float]
    stored: dict[int, float]
    released: deque[tuple[int, float]]
    credit: int
    space: float

    def copy(self) -> "_State":
        return _State(
            self.plan.copy(),
            self.free.copy(),
            self.ends.copy(),
            self.since.copy(),
            self.until.copy(),
            self.stored.copy(),
            self.released.copy(),
            self.credit,
            self.space,
        )


class Timeline:
    """The schedule of `order` with loads up to `ahead` ops early, which ends at `value` seconds."""

    def __init__(self, problem: LatencyProblem, order: Sequence[int], ahead: int) -> None:
        self.problem = problem
        self.traffic = traffic = problem.traffic or NO_TRAFFIC
        self.planner = Planner(traffic, len(problem), ahead)
        work = [0.0] * problem.unit_count
        for stages in problem.plain:
            for unit, seconds, _ in stages:
                work[unit] += seconds
        self.busiest = max(range(len(work)), key=work.__getitem__, default=0)
        self.reset(order)

    def reset(self, order: Sequence[int]) -> None:
        """Schedule `order` from the beginning."""
        self.order = list(order)
        self.position = [0] * len(self.order)
        for place, op in enumerate(self.order):
            self.position[op] = place
        self.planner.uses = [self._uses(v) for v in range(len(self.traffic.values))]
        state = self._entry()
        self.copies = [state.copy()]
        for begin in range(0, len(self.order), SPACING):
            self._run(state, begin, min(begin + SPACING, len(self.order)))
            self.copies.append(state.copy())
        self.value = max(state.free, default=0.0)

    def change(self, begin: int, ops: Sequence[int]) -> bool:
        """Put `ops`, those from `begin` on in another order, in their place if that is no later.

        Returns whether it did.
        """
        old = self.order[begin : begin + len(ops)]
        self._place(begin, ops)
        first, end = begin // SPACING, begin + len(ops)
        state = self.copies[first].copy()
        for v in {v for op in ops for v in self.planner.reads[op]}:
            uses = self.planner.uses[v]
            place = bisect_left(uses, first * SPACING)
            state.plan.next_use[v] = uses[place] if place < len(uses) else inf
        made: list[_State] = []
        for number in range(first + 1, len(self.copies)):
            stop = min(number * SPACING, len(self.order))
            self._run(state, stop - (stop - 1) % SPACING - 1, stop)
            behind = stop - self.planner.ahead - end
            if behind >= 0:
                verdict = self._compare(state, self.copies[number], behind >= SETTLED)
                if verdict > 0:
                    self._place(begin, old)
                    return False
                if verdict == 0:
                    break
            made.append(state.copy())
        else:
            value = max(state.free)
            if value > self.value:
                self._place(begin, old)
                return False
            self.value = value
        self.copies[first + 1 : first + 1 + len(made)] = made
        return True

    def idle(self) -> list[float]:
        """The seconds that the busiest unit waits in each `SPACING` ops."""
        unit, found = self.busiest, list[float]()
        for number, (old, new) in enumerate(pairwise(self.copies)):
            ops = self.order[self._ran(number) : self._ran(number + 1)]
            work = sum(s for op in ops for u, s, _ in self.problem.plain[op] if u == unit)
            found.append(max(new.free[unit] - old.free[unit] - work, 0.0))
        return found

    def _ran(self, number: int) -> int:
        """The ops that have run in a copy, those that may get loads are still to run."""
        planned = number * SPACING
        return planned if planned >= len(self.order) else max(planned - self.planner.ahead, 0)

    def _compare(self, new: _State, old: _State, settled: bool) -> int:
        """1 where a state is no better, 0 where it is the same, -1 where that is not known yet."""
        late = [a - b for a, b in zip(new.free, old.free, strict=True)]
        later, earlier = max(late) > TOLERANCE, min(late) < -TOLERANCE
        if later and (not earlier or (settled and late[self.busiest] > TOLERANCE)):
            return 1
        same = new.plan.resident.keys() == old.plan.resident.keys()
        return 0 if same and not later and not earlier else -1

    def _place(self, begin: int, ops: Sequence[int]) -> None:
        self.order[begin : begin + len(ops)] = ops
        for place, op in enumerate(ops, begin):
            self.position[op] = place
        for v in {v for op in ops for v in self.planner.reads[op]}:
            self.planner.uses[v] = self._uses(v)

    def _uses(self, v: int) -> list[int]:
        users = self.traffic.values[v].consumers
        if len(users) == 1:
            return [self.position[users[0]]]
        return sorted([self.position[op] for op in users])

    def _entry(self) -> _State:
        """What is present is there from the beginning."""
        plan = self.planner.enter()
        since = dict.fromkeys(plan.resident, 0.0)
        free = [0.0] * self.problem.unit_count
        ends = [0.0] * len(self.order)
        credit = self.traffic.capacity - plan.used
        return _State(plan, free, ends, since, since.copy(), {}, deque(), credit, 0.0)

    def _run(self, state: _State, begin: int, end: int) -> None:
        """Plans the ops at these places and runs those to which no load is added any more."""
        plan, order = self.planner.plan, self.order
        for place in range(begin, end):
            step = plan(state.plan, order[place], place)
            if step is not None:
                self._issue(state, step)
        if end == len(order):
            pending = state.plan.pending
            while pending:
                self._issue(state, pending.popleft())

    def _issue(self, state: _State, step: Step) -> None:
        since, until, op, over = state.since, state.until, step.op, step.over
        if step.evicted:
            self._evict(state, step)
        if step.loads:
            self._load(state, step.loads)
        after = 0.0
        for predecessor in self.problem.graph.predecessors[op]:
            if state.ends[predecessor] > after:
                after = state.ends[predecessor]
        reads, makes = self.planner.reads[op], self.planner.makes[op]
        for v in reads:
            if since[v] > after:
                after = since[v]
        if over is not None:
            after = max(after, until[over])
            del since[over], until[over]
        elif makes:
            after = max(after, self._reserve(state, step.made))
        state.ends[op] = done = self.problem.advance(op, after, state.free)
        if step.early:
            self._load(state, step.early)
        for v in reads:
            if v != over and done > until[v]:
                until[v] = done
        for v in makes:
            since[v] = until[v] = done
            if self.planner.outputs[v]:
                state.stored[v] = until[v] = self._store(state, v, done)
        for v in step.dead:
            del since[v]
            state.released.append((self.planner.sizes[v], until.pop(v)))

    def _load(self, state: _State, loads: Sequence[int]) -> None:
        values, stored, unit = self.traffic.values, state.stored, self.traffic.load_unit
        for v in loads:
            value = values[v]
            after = max(self._reserve(state, value.size), stored.get(v, 0.0), state.free[unit])
            for source in value.sources:
                after = max(after, stored.get(source, 0.0))
            state.free[unit] = state.since[v] = state.until[v] = after + value.load

    def _store(self, state: _State, v: int, after: float) -> float:
        unit = self.traffic.store_unit
        state.free[unit] = end = max(state.free[unit], after) + self.traffic.values[v].store
        return end

    def _evict(self, state: _State, step: Step) -> None:
        for v, dirty in step.evicted:
            if dirty:
                state.stored[v] = end = self._store(state, v, state.since[v])
                state.until[v] = max(state.until[v], end)
            del state.since[v]
            state.released.append((self.planner.sizes[v], state.until.pop(v)))

    def _reserve(self, state: _State, size: int) -> float:
        """When `size` bytes are free, for what is issued next."""
        while state.credit < size:
            freed, after = state.released.popleft()
            state.credit += freed
            state.space = max(state.space, after)
        state.credit -= size
        return state.space
