"""Which values are on the chip when, for a given order: what is loaded, kept, spilled, reloaded.

Values are loaded when their first reader is issued and stay until their last; where there is no
room, the one whose next use is furthest away goes (L. Belady, "A study of replacement algorithms
for a virtual-storage computer", IBM Systems Journal 1966), and is stored first if nowhere else.

A result may lie over an operand of its size that dies with its op: it takes over the room.

Room is handed out in the order of issue: what is reserved waits for as many releases, the oldest
first, as it takes. A reservation so waits only for what is issued before, and nothing deadlocks.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, Protocol, TypeVar

from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.traffic import Traffic, uses_in

Token = TypeVar("Token")


class Sink(Protocol[Token]):
    """What executes the steps of an order. A token says when something has ended."""

    @property
    def start(self) -> Token:
        """The token of what has always ended."""
        ...

    def begin(self, op: int) -> None:
        """What follows is done for this op."""
        ...

    def join(self, first: Token, second: Token, /) -> Token:
        """When both have ended."""
        ...

    def load(self, value: int, after: Token) -> Token:
        """Loads a value into room that is free `after`."""
        ...

    def store(self, value: int, after: Token) -> Token:
        """Stores a value."""
        ...

    def overwrite(self, value: int, after: Token) -> Token:
        """Hands the room of `value`, read by others until `after`, on to what the op makes.

        Returns when that may be written.
        """
        ...

    def compute(self, op: int, after: Token) -> Token:
        """Runs the op on what is on the chip `after`."""
        ...

    def release(self, value: int, after: Token) -> None:
        """Notes that the room of `value` is free `after`."""
        ...


@dataclass
class _Resident(Generic[Token]):
    """A value on the chip: there after `since`, no longer read after `until`."""

    since: Token
    until: Token
    dirty: bool


@dataclass
class Residency(Generic[Token]):
    """Issues orders of one problem to a sink."""

    graph: Graph
    traffic: Traffic
    sink: Sink[Token]

    def run(self, order: Sequence[int]) -> None:
        """Issues all ops of `order`.

        Raises ValueError for an op whose values do not fit the capacity together.
        """
        self.uses = uses_in(self.traffic, order)
        self.credit = self.traffic.capacity
        self.space = self.sink.start
        self.released: deque[tuple[int, Token]] = deque()
        self.stored: dict[int, Token] = {}
        self.ends: dict[int, Token] = {}
        self.resident: dict[int, _Resident[Token]] = {}
        self.used = 0
        self._enter()
        for op in order:
            self._issue(op)
        for v in list(self.resident):
            self._release(v)

    def _enter(self) -> None:
        """What is present takes its room, what is read first before others."""
        values, start = self.traffic.values, self.sink.start
        present = [v for v, value in enumerate(values) if value.present]
        for v in sorted(present, key=self._next_use):
            size = values[v].size
            if self.used + size <= self.traffic.capacity:
                self.resident[v] = _Resident(start, start, dirty=False)
                self.used += size
                self.credit -= size

    def _issue(self, op: int) -> None:
        sink, values = self.sink, self.traffic.values
        sink.begin(op)
        reads, makes = self.traffic.reads.get(op, ()), self.traffic.makes.get(op, ())
        absent = [v for v in reads if v not in self.resident]
        over = self._overwritten(op)
        wanted = (*absent, *makes) if over is None else absent
        self._make_room(op, {*reads}, sum(values[v].size for v in wanted))
        after = sink.start
        for before in self.graph.predecessors[op]:
            after = sink.join(after, self.ends[before])
        for v in absent:
            free = self._reserve(values[v].size)
            for source in (v, *values[v].sources):
                free = sink.join(free, self.stored.get(source, sink.start))
            since = sink.load(v, free)
            self.resident[v] = _Resident(since, since, dirty=False)
        for v in reads:
            after = sink.join(after, self.resident[v].since)
        if over is not None:
            after = sink.join(after, sink.overwrite(over, self.resident[over].until))
        elif makes:
            after = sink.join(after, self._reserve(sum(values[v].size for v in makes)))
        self.ends[op] = end = sink.compute(op, after)
        if over is not None:
            del self.resident[over]
        for v in reads:
            self.uses[v].pop()
            if v != over:
                state = self.resident[v]
                state.until = sink.join(state.until, end)
                self._drop_if_dead(v)
        for v in makes:
            state = self.resident[v] = _Resident(end, end, dirty=True)
            if values[v].output:
                self.stored[v] = state.until = sink.store(v, end)
                state.dirty = False
            self._drop_if_dead(v)

    def _overwritten(self, op: int) -> int | None:
        """The value that what `op` makes lies over."""
        for v in self.traffic.over.get(op, ()):
            dirty = v in self.resident and self.resident[v].dirty
            if len(self.uses[v]) == 1 and not (self.traffic.values[v].kept and dirty):
                return v
        return None

    def _make_room(self, op: int, needed: set[int], size: int) -> None:
        capacity = self.traffic.capacity
        while self.used + size > capacity:
            victims = [v for v in self.resident if v not in needed]
            if not victims:
                raise ValueError(f"op {op} does not fit {capacity} bytes")
            self._evict(max(victims, key=self._next_use))
        self.used += size

    def _evict(self, v: int) -> None:
        state = self.resident[v]
        if state.dirty:
            self.stored[v] = self.sink.store(v, state.since)
            state.until = self.sink.join(state.until, self.stored[v])
        self._release(v)

    def _next_use(self, v: int) -> float:
        return self.uses[v][-1] if self.uses[v] else inf

    def _drop_if_dead(self, v: int) -> None:
        if not self.uses[v] and not (self.traffic.values[v].kept and self.resident[v].dirty):
            self._release(v)

    def _release(self, v: int) -> None:
        until, size = self.resident.pop(v).until, self.traffic.values[v].size
        self.sink.release(v, until)
        self.used -= size
        self.released.append((size, until))

    def _reserve(self, size: int) -> Token:
        """When `size` bytes are free, for what is issued next."""
        while self.credit < size:
            freed, after = self.released.popleft()
            self.credit += freed
            self.space = self.sink.join(self.space, after)
        self.credit -= size
        return self.space
