"""Issue the ops of a given order, with loads, spills and reloads as `residency_plan` plans them.

A result may lie over an operand of its size that dies with its op: it takes over the memory.

Memory is allocated in the order of issue: a reservation waits for as many releases, the oldest
first, as it needs. A reservation so waits only for what is issued before, and nothing deadlocks.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.residency_plan import Planner, PlanStep
from braid.solvers.ordering.traffic import Traffic, uses_in

Token = TypeVar("Token")


class Sink(Protocol[Token]):
    """A sink that executes the steps of an order. A token says when something has ended."""

    @property
    def start(self) -> Token:
        """The token of what has always ended."""
        ...

    def begin(self, op: int) -> None:
        """Note that the calls that follow are for `op`."""
        ...

    def join(self, first: Token, second: Token, /) -> Token:
        """Return when both have ended."""
        ...

    def load(self, value: int, after: Token) -> Token:
        """Load a value into memory that is free after `after`."""
        ...

    def store(self, value: int, after: Token) -> Token:
        """Store a value, and return when that has ended."""
        ...

    def overwrite(self, value: int, after: Token) -> Token:
        """Hand the memory of `value`, read by others until `after`, on to the result of the op.

        Returns when that may be written.
        """
        ...

    def compute(self, op: int, after: Token) -> Token:
        """Run the op on what is on the chip `after`."""
        ...

    def release(self, value: int, after: Token) -> None:
        """Note that the memory of `value` is free after `after`."""
        ...


@dataclass
class Residency(Generic[Token]):
    """Issues orders of one problem to a sink.

    Loads come up to `ahead` ops early, but not before place `first` of the order.
    """

    graph: Graph
    traffic: Traffic
    sink: Sink[Token]
    ahead: int = 0
    first: int = 0

    def run(self, order: Sequence[int]) -> None:
        """Issue all ops of `order`.

        Raises ValueError for an op whose values do not fit the capacity together.
        """
        self.credit = self.traffic.capacity
        self.space = self.sink.start
        self.released: deque[tuple[int, Token]] = deque()
        self.stored: dict[int, Token] = {}
        self.ends: dict[int, Token] = {}
        planner = Planner(self.traffic, len(order), self.ahead, self.first)
        planner.uses = uses_in(self.traffic, order)
        state = planner.enter()
        # A resident value is on the chip from `since` on, and no longer read after `until`.
        self.since = dict.fromkeys(state.resident, self.sink.start)
        self.until = self.since.copy()
        self.credit -= state.used
        for place, op in enumerate(order):
            step = planner.plan(state, op, place)
            if step is not None:
                self._issue(step)
        for step in state.pending:
            self._issue(step)
        for v in list(self.since):
            self._release(v)

    def _issue(self, step: PlanStep) -> None:
        sink, op, over = self.sink, step.op, step.over
        sink.begin(op)
        for v, dirty in step.evicted:
            if dirty:
                self.stored[v] = sink.store(v, self.since[v])
                self.until[v] = sink.join(self.until[v], self.stored[v])
            self._release(v)
        for v in step.loads:
            self._load(v)
        reads, makes = self.traffic.reads.get(op, ()), self.traffic.makes.get(op, ())
        after = sink.start
        for before in self.graph.predecessors[op]:
            after = sink.join(after, self.ends[before])
        for v in reads:
            after = sink.join(after, self.since[v])
        if over is not None:
            after = sink.join(after, sink.overwrite(over, self.until[over]))
            del self.since[over], self.until[over]
        elif makes:
            after = sink.join(after, self._reserve(step.made))
        self.ends[op] = end = sink.compute(op, after)
        for v in step.early:
            self._load(v)
        for v in reads:
            if v != over:
                self.until[v] = sink.join(self.until[v], end)
        for v in makes:
            self.since[v] = self.until[v] = end
            if self.traffic.values[v].output:
                self.stored[v] = self.until[v] = sink.store(v, end)
        for v in step.dead:
            self._release(v)

    def _load(self, v: int) -> None:
        free = self._reserve(self.traffic.values[v].size)
        for source in (v, *self.traffic.values[v].sources):
            free = self.sink.join(free, self.stored.get(source, self.sink.start))
        self.since[v] = self.until[v] = self.sink.load(v, free)

    def _release(self, v: int) -> None:
        del self.since[v]
        until = self.until.pop(v)
        self.sink.release(v, until)
        self.released.append((self.traffic.values[v].size, until))

    def _reserve(self, size: int) -> Token:
        """Return when `size` bytes are free, for what is issued next."""
        while self.credit < size:
            freed, after = self.released.popleft()
            self.credit += freed
            self.space = self.sink.join(self.space, after)
        self.credit -= size
        return self.space
