"""Plan which values are on the chip when, for a given order, whatever time anything takes.

Values are loaded for their first reader and stay until their last; where memory is full, the
one whose next use is furthest away goes (L. Belady, "A study of replacement algorithms for a
virtual-storage computer", IBM Systems Journal 1966), and is stored first if nowhere else. Of
several that one of the highest number goes.

A value is evicted as soon as it is no longer read. Planned loads are then moved ahead, to the
earliest of the last few ops from which on the value fits until its reader. A load stays after the
op that stores its value and after all earlier loads, whose order does not change.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from braid.solvers.ordering.traffic import Traffic

AHEADS = (0, 16, 64)
"""Ops by which loads come early at most: what is worth a try.

A chip's memory holds the tiles of a few ops, so that there is hardly ever free memory further
ahead, and values that come too early may displace values that are needed sooner.
"""


@dataclass(slots=True)
class PlanStep:
    """The actions for the op at one place of an order, field by field.

    Values are `evicted`, stored first where that is said, and `loads` issued. The result of the op
    takes `made` bytes or overlays the value `over`. `early` are loads for later ops while it runs,
    and `free` bytes stay unused. Then the `dead` leave.
    """

    op: int
    evicted: list[tuple[int, bool]]
    loads: Sequence[int]
    over: int | None
    made: int
    early: tuple[int, ...]
    free: int
    dead: Sequence[int]


@dataclass(slots=True)
class PlanState:
    """The state on which the plan of the next steps depends.

    `resident` says of each value on the chip whether it is dirty, that is, stored nowhere else, and
    `touched` at which position it was last made or read; `outside` from which place on what has
    been stored can be loaded. Loads and evictions may still be put into `pending` steps, but no
    load before place `last`, where the latest one is.
    """

    resident: dict[int, bool]
    touched: list[int]
    next_use: list[float]
    outside: dict[int, int]
    pending: deque[PlanStep]
    used: int
    last: int


class Planner:
    """Plans orders place by place, with loads up to `ahead` ops early.

    No value is loaded or evicted before position `first`.

    `uses` are the places at which each value is read, ascending.
    """

    def __init__(self, traffic: Traffic, count: int, ahead: int, first: int = 0) -> None:
        self.traffic = traffic
        self.ahead = ahead
        self.first = first
        self.reads = [traffic.reads.get(op, ()) for op in range(count)]
        self.makes = [traffic.makes.get(op, ()) for op in range(count)]
        self.over = [traffic.over.get(op, ()) for op in range(count)]
        self.sizes = [value.size for value in traffic.values]
        self.kept = [value.kept for value in traffic.values]
        self.outputs = [value.output for value in traffic.values]
        self.uses: list[list[int]] = [[] for _ in traffic.values]

    def enter(self) -> PlanState:
        """Return the initial state: present values take memory, those that are read first before
        others.
        """
        next_use = [float(uses[0]) if uses else inf for uses in self.uses]
        resident: dict[int, bool] = {}
        used = 0
        present = [v for v, value in enumerate(self.traffic.values) if value.present]
        for v in sorted(present, key=next_use.__getitem__):
            if used + self.sizes[v] <= self.traffic.capacity:
                resident[v] = False
                used += self.sizes[v]
        touched = [-1] * len(self.sizes)
        return PlanState(resident, touched, next_use, {}, deque(), used, self.first)

    def plan(self, state: PlanState, op: int, place: int) -> PlanStep | None:
        """Plan `op`, and return the step to which no load is added any more.

        Raises ValueError for an op whose values do not fit the capacity together.
        """
        sizes, resident = self.sizes, state.resident
        reads, makes = self.reads[op], self.makes[op]
        loads = [v for v in reads if v not in resident]
        over = self._overwritten(state, op, place) if self.over[op] else None
        made = sum([sizes[v] for v in makes]) if over is None else 0
        size = made + sum([sizes[v] for v in loads]) if loads else made
        evicted: list[tuple[int, bool]] = []
        while state.used + size > self.traffic.capacity:
            self._evict(state, op, place, evicted)
        state.used += size
        free = self.traffic.capacity - state.used
        if loads:
            for v in loads:
                resident[v] = False
            if state.pending:
                loads = self._hoist(state, loads, place)
            elif self.ahead:
                state.last = place
        dead = self._leave(state, op, place, over)
        step = PlanStep(op, evicted, loads, over, made, (), free, dead)
        if not self.ahead:
            return step
        state.pending.append(step)
        return state.pending.popleft() if len(state.pending) > self.ahead else None

    def _overwritten(self, state: PlanState, op: int, place: int) -> int | None:
        """Return the value that what `op` makes lies over."""
        for v in self.over[op]:
            if self.uses[v][-1] == place and not (self.kept[v] and state.resident.get(v, False)):
                return v
        return None

    def _evict(
        self, state: PlanState, op: int, place: int, evicted: list[tuple[int, bool]]
    ) -> None:
        """Evict a value before a pending step, or with those `evicted` for `op` itself."""
        reads = self.reads[op]
        victims = [v for v in state.resident if v not in reads]
        if not victims:
            raise ValueError(f"op {op} does not fit {self.traffic.capacity} bytes")
        v = max(victims, key=lambda v: (state.next_use[v], v))
        state.used -= self.sizes[v]
        begin = place - len(state.pending)
        slot = max(state.touched[v] + 1, begin, self.first)
        state.outside[v] = slot
        for between in range(slot - begin, len(state.pending)):
            state.pending[between].free += self.sizes[v]
        where = evicted if slot == place else state.pending[slot - begin].evicted
        where.append((v, state.resident.pop(v)))

    def _hoist(self, state: PlanState, loads: Sequence[int], place: int) -> list[int]:
        """Put loads into pending steps, and return those that stay where they are."""
        pending, outside = state.pending, state.outside
        begin = place - len(pending)
        stay: list[int] = []
        for v in loads:
            least = max(state.last, begin, outside.get(v, 0))
            for source in self.traffic.values[v].sources:
                least = max(least, outside.get(source, 0))
            size, slot = self.sizes[v], place
            while slot > least and pending[slot - 1 - begin].free >= size:
                slot -= 1
            state.last = slot
            if slot == place:
                stay.append(v)
                continue
            pending[slot - begin].early += (v,)
            for between in range(slot - begin, len(pending)):
                pending[between].free -= size
        return stay

    def _leave(self, state: PlanState, op: int, place: int, over: int | None) -> list[int]:
        """Return the values that are not needed once `op` has run."""
        resident, next_use, dead = state.resident, state.next_use, list[int]()
        for v in (*self.reads[op], *self.makes[op]):
            state.touched[v] = place
        for v in self.reads[op]:
            uses = self.uses[v]
            if place < uses[-1]:
                next_use[v] = uses[bisect_right(uses, place)]
                continue
            next_use[v] = inf
            if v == over:
                del resident[v]
            elif not (self.kept[v] and resident[v]):
                dead.append(v)
        for v in self.makes[op]:
            resident[v] = dirty = not self.outputs[v]
            if not dirty:
                state.outside[v] = place + 1
            if not self.uses[v] and not (self.kept[v] and dirty):
                dead.append(v)
        for v in dead:
            state.used -= self.sizes[v]
            del resident[v]
        return dead
