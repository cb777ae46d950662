"""An order of issue on a chip that is changed a window at a time.

The same schedule as `residency` makes, step by step, with copies of its state every `SPACING`
ops. After a change the schedule continues from the copy before it, and ends as soon as it is seen
to be no better. What was evicted before the window may have been chosen by uses inside of it, so
that the time of a change is an estimate until the schedule is made anew (`reset`).
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.traffic import NO_TRAFFIC

SPACING = 32
SETTLED = 4 * SPACING
"""Ops behind a change after which a delay of the busiest unit is taken to stay."""
TOLERANCE = 1e-12


@dataclass(slots=True)
class _State:
    """When units, values and ops are done; `since` and `until` have what is on the chip."""

    free: list[float]
    ends: list[float]
    next_use: list[float]
    since: dict[int, float]
    until: dict[int, float]
    dirty: set[int]
    stored: dict[int, float]
    released: deque[tuple[int, float]]
    used: int
    credit: int
    space: float

    def copy(self) -> "_State":
        return _State(
            self.free.copy(),
            self.ends.copy(),
            self.next_use.copy(),
            self.since.copy(),
            self.until.copy(),
            self.dirty.copy(),
            self.stored.copy(),
            self.released.copy(),
            self.used,
            self.credit,
            self.space,
        )


class Timeline:
    """The schedule of `order`, which ends at `value` seconds."""

    def __init__(self, problem: LatencyProblem, order: Sequence[int]) -> None:
        self.problem = problem
        self.traffic = traffic = problem.traffic or NO_TRAFFIC
        count = range(len(problem))
        self.reads = [traffic.reads.get(op, ()) for op in count]
        self.makes = [traffic.makes.get(op, ()) for op in count]
        self.over = [traffic.over.get(op, ()) for op in count]
        self.sizes = [value.size for value in traffic.values]
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
        self.uses = [self._uses(v) for v in range(len(self.sizes))]
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
        for v in {v for op in ops for v in self.reads[op]}:
            uses = self.uses[v]
            place = bisect_left(uses, first * SPACING)
            state.next_use[v] = uses[place] if place < len(uses) else inf
        made: list[_State] = []
        for number in range(first + 1, len(self.copies)):
            stop = min(number * SPACING, len(self.order))
            self._run(state, stop - (stop - 1) % SPACING - 1, stop)
            if stop >= end:
                verdict = self._compare(state, self.copies[number], stop - end >= SETTLED)
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
            ops = self.order[number * SPACING : (number + 1) * SPACING]
            work = sum(s for op in ops for u, s, _ in self.problem.plain[op] if u == unit)
            found.append(max(new.free[unit] - old.free[unit] - work, 0.0))
        return found

    def _compare(self, new: _State, old: _State, settled: bool) -> int:
        """1 where a state is no better, 0 where it is the same, -1 where that is not known yet."""
        late = [a - b for a, b in zip(new.free, old.free, strict=True)]
        later, earlier = max(late) > TOLERANCE, min(late) < -TOLERANCE
        if later and (not earlier or (settled and late[self.busiest] > TOLERANCE)):
            return 1
        return 0 if not later and not earlier and new.since.keys() == old.since.keys() else -1

    def _place(self, begin: int, ops: Sequence[int]) -> None:
        self.order[begin : begin + len(ops)] = ops
        for place, op in enumerate(ops, begin):
            self.position[op] = place
        for v in {v for op in ops for v in self.reads[op]}:
            self.uses[v] = self._uses(v)

    def _uses(self, v: int) -> list[int]:
        users = self.traffic.values[v].consumers
        if len(users) == 1:
            return [self.position[users[0]]]
        return sorted([self.position[op] for op in users])

    def _entry(self) -> _State:
        """What is present takes its room, what is read first before others."""
        capacity, values = self.traffic.capacity, self.traffic.values
        next_use = [float(uses[0]) if uses else inf for uses in self.uses]
        since: dict[int, float] = {}
        used = 0
        present = [v for v, value in enumerate(values) if value.present]
        for v in sorted(present, key=next_use.__getitem__):
            if used + self.sizes[v] <= capacity:
                since[v] = 0.0
                used += self.sizes[v]
        free = [0.0] * self.problem.unit_count
        ends = [0.0] * len(self.order)
        return _State(
            free,
            ends,
            next_use,
            since,
            since.copy(),
            set(),
            {},
            deque(),
            used,
            capacity - used,
            0.0,
        )

    def _run(self, state: _State, begin: int, end: int) -> None:
        advance, before = self.problem.advance, self.problem.graph.predecessors
        ends, since, free = state.ends, state.since, state.free
        for place in range(begin, end):
            op = self.order[place]
            after = 0.0
            for predecessor in before[op]:
                if ends[predecessor] > after:
                    after = ends[predecessor]
            reads, makes = self.reads[op], self.makes[op]
            over = self._overwritten(state, op) if self.over[op] else None
            made = self._move_in(state, op, over)
            for v in reads:
                if since[v] > after:
                    after = since[v]
            if over is not None:
                after = max(after, state.until[over])
            elif makes:
                after = max(after, self._reserve(state, made))
            ends[op] = done = advance(op, after, free)
            self._move_out(state, op, place, done, over)

    def _overwritten(self, state: _State, op: int) -> int | None:
        """The value that what `op` makes lies over."""
        last = self.position[op]
        for v in self.over[op]:
            if self.uses[v][-1] == last and not (self.traffic.values[v].kept and v in state.dirty):
                return v
        return None

    def _move_in(self, state: _State, op: int, over: int | None) -> int:
        """Loads what `op` reads; returns the bytes that it makes and that lie over no others."""
        sizes, since, values = self.sizes, state.since, self.traffic.values
        made = sum([sizes[v] for v in self.makes[op]]) if over is None else 0
        absent = [v for v in self.reads[op] if v not in since]
        size = made + sum([sizes[v] for v in absent])
        while state.used + size > self.traffic.capacity:
            self._evict(state, op)
        state.used += size
        unit = self.traffic.load_unit
        for v in absent:
            after = max(self._reserve(state, sizes[v]), state.stored.get(v, 0.0), state.free[unit])
            for source in values[v].sources:
                after = max(after, state.stored.get(source, 0.0))
            state.free[unit] = since[v] = state.until[v] = after + values[v].load
        return made

    def _move_out(self, state: _State, op: int, place: int, done: float, over: int | None) -> None:
        values = self.traffic.values
        for v in self.reads[op]:
            if v == over:
                state.next_use[v] = inf
                del state.since[v], state.until[v]
                state.dirty.discard(v)
                continue
            if done > state.until[v]:
                state.until[v] = done
            uses = self.uses[v]
            if place < uses[-1]:
                state.next_use[v] = uses[bisect_right(uses, place)]
            else:
                state.next_use[v] = inf
                if not (values[v].kept and v in state.dirty):
                    self._release(state, v)
        for v in self.makes[op]:
            state.since[v] = state.until[v] = done
            if values[v].output:
                state.stored[v] = state.until[v] = self._store(state, v, done)
            else:
                state.dirty.add(v)
            if not self.uses[v] and not (values[v].kept and v in state.dirty):
                self._release(state, v)

    def _store(self, state: _State, v: int, after: float) -> float:
        unit = self.traffic.store_unit
        state.free[unit] = end = max(state.free[unit], after) + self.traffic.values[v].store
        return end

    def _evict(self, state: _State, op: int) -> None:
        victims = [v for v in state.since if v not in self.reads[op]]
        if not victims:
            raise ValueError(f"op {op} does not fit {self.traffic.capacity} bytes")
        v = max(victims, key=state.next_use.__getitem__)
        if v in state.dirty:
            state.stored[v] = end = self._store(state, v, state.since[v])
            state.until[v] = max(state.until[v], end)
        self._release(state, v)

    def _release(self, state: _State, v: int) -> None:
        del state.since[v]
        state.dirty.discard(v)
        state.used -= self.sizes[v]
        state.released.append((self.sizes[v], state.until.pop(v)))

    def _reserve(self, state: _State, size: int) -> float:
        """When `size` bytes are free, for what is issued next."""
        while state.credit < size:
            freed, after = state.released.popleft()
            state.credit += freed
            state.space = max(state.space, after)
        state.credit -= size
        return state.space
