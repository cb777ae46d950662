"""Runs an instruction stream on a model of the chip.

Instructions are fetched in order and handed to their units; every unit executes its own in that
order, one at a time, and `sync` holds it until another instruction has ended. Transfers through
one port share its bandwidth evenly, each up to the rate of its unit. An instruction that declares
its seconds takes these, and no part of a port. The buffers of the stream
must fit the memory of the chip at all times.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf

from braid.support.errors import BraidError
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Instruction, Kind, Stream


@dataclass(frozen=True)
class Span:
    """The time of an instruction on a unit, in seconds; `index` is its number in the stream."""

    index: int
    unit: int
    start: float
    end: float


@dataclass(frozen=True)
class Event:
    """The beginning or the end of an instruction; `index` is its number in the stream."""

    index: int
    ends: bool


@dataclass(frozen=True)
class Timeline:
    """The times of all that ran, in seconds; those by unit in the order of the backend's units."""

    spans: tuple[Span, ...]
    seconds: float
    busy: tuple[float, ...]
    stalled: tuple[float, ...]
    """Waiting with instructions left."""
    peak_bytes: int = 0
    """The most that buffers on the chip take at one time."""
    events: tuple[Event, ...] = ()
    """The events, in order; at equal times, ends come before the instructions that wait for
    them."""


def fetch_seconds(backend: BackendDescription) -> float:
    """Return how long it takes to read one instruction. Raises BraidError without an issue
    model.
    """
    if backend.issue is None:
        raise BraidError(
            f"backend '{backend.name}' is not programmed by instructions",
            hint="its description in the target file needs a [[backend.issue]]",
        )
    bandwidth = {port.name: port.bandwidth for port in backend.ports}[backend.issue.port]
    return backend.issue.instruction_bytes / bandwidth


def simulate(stream: Stream, backend: BackendDescription) -> Timeline:
    """Return when each instruction of `stream` runs.

    Raises BraidError for a unit that the backend lacks or that does not execute the kind, for a
    stream that comes to a standstill, and for one whose buffers do not fit the chip's memory.
    """
    _check(stream, backend)
    timeline = _Machine(stream, backend, fetch_seconds(backend)).run()
    peak = peak_bytes(stream, timeline.spans)
    if backend.memories and peak > backend.memories[0].bytes:
        memory = backend.memories[0]
        raise BraidError(
            f"the buffers of the stream take {peak} bytes at one time, but '{memory.name}' of "
            f"backend '{backend.name}' has {memory.bytes}",
            hint="the stream was made for another chip, or a sync is missing",
        )
    return replace(timeline, peak_bytes=peak)


def peak_bytes(stream: Stream, spans: Iterable[Span]) -> int:
    """Return the most bytes that the buffers of `stream` take at one time."""
    when = {span.index: span for span in spans}
    changes: list[tuple[float, int]] = []
    for buffer in stream.buffers:
        changes.append((when[buffer.first].start, buffer.size))
        end = max((when[index].end for index in (buffer.first, *buffer.last)), default=0.0)
        changes.append((end, -buffer.size))
    return max(accumulate(size for _, size in sorted(changes)), default=0)


def _check(stream: Stream, backend: BackendDescription) -> None:
    for index, instruction in enumerate(stream.instructions):
        kind = instruction.kind.name.lower()
        if instruction.unit >= len(backend.units):
            raise BraidError(
                f"instruction {index} is for unit {instruction.unit}, but backend "
                f"'{backend.name}' has {len(backend.units)} units"
            )
        unit = backend.units[instruction.unit]
        executed = backend.executes(instruction.unit)
        if instruction.kind != Kind.SYNC and kind not in executed:
            raise BraidError(
                f"instruction {index} is a {kind}, but unit '{unit.name}' executes "
                f"{' and '.join(sorted(executed))}"
            )


@dataclass
class _Active:
    """The instruction that a unit is executing: seconds of start-up left, then an amount left."""

    index: int
    start: float
    startup: float
    amount: float


@dataclass
class _Machine:
    stream: Stream
    backend: BackendDescription
    fetch: float
    now: float = 0.0
    ended: set[int] = field(default_factory=set[int])
    active: dict[int, _Active] = field(default_factory=dict[int, _Active])
    spans: list[Span] = field(default_factory=list[Span])
    events: list[Event] = field(default_factory=list[Event])

    def run(self) -> Timeline:
        self.queues = [deque[tuple[int, Instruction]]() for _ in self.backend.units]
        for index, instruction in enumerate(self.stream.instructions):
            self.queues[instruction.unit].append((index, instruction))
        while self._issue():
            self._advance()
        ends = [0.0] * len(self.queues)
        busy = [0.0] * len(self.queues)
        for span in self.spans:
            ends[span.unit] = max(ends[span.unit], span.end)
            busy[span.unit] += span.end - span.start
        stalled = tuple(end - used for end, used in zip(ends, busy, strict=True))
        seconds, events = max(ends, default=0.0), tuple(self.events)
        return Timeline(tuple(self.spans), seconds, tuple(busy), stalled, events=events)

    def _issue(self) -> bool:
        """Start what can start, and return whether anything is left to do."""
        # A sync that has ended may be what a sync of a unit looked at before waits for.
        while sum(map(self._issue_to, range(len(self.queues)))):
            pass
        return bool(self.active) or any(self.queues)

    def _issue_to(self, unit: int) -> bool:
        """Start what `unit` can, and return whether a sync has ended."""
        queue, synced = self.queues[unit], False
        while unit not in self.active and queue and self._arrival(queue[0][0]) <= self.now:
            index, instruction = queue[0]
            if instruction.kind != Kind.SYNC:
                startup, amount = self.backend.units[unit].startup_seconds, instruction.amount
                if instruction.seconds is not None:
                    startup, amount = instruction.seconds, 0
                self.active[unit] = _Active(index, self.now, startup, amount)
                self.events.append(Event(index, ends=False))
            elif instruction.amount in self.ended:
                self.ended.add(index)
                synced = True
            else:
                break
            queue.popleft()
        return synced

    def _arrival(self, index: int) -> float:
        return (index + 1) * self.fetch

    def _advance(self) -> None:
        """Go to the next time at which an instruction arrives, starts up, or ends."""
        rates = self._rates()
        arrivals = [self._arrival(queue[0][0]) for queue in self.queues if queue]
        arrival = min((time for time in arrivals if time > self.now), default=inf)
        left = {
            unit: task.startup if task.startup > 0 else task.amount / rates[unit]
            for unit, task in self.active.items()
        }
        step = min([*left.values(), arrival - self.now])
        if step == inf:
            raise self._standstill()
        self.now = arrival if step == arrival - self.now else self.now + step
        for unit, task in list(self.active.items()):
            if task.startup > 0:
                task.startup = 0.0 if left[unit] <= step else task.startup - step
                done = task.startup == 0.0 and task.amount == 0
            else:
                task.amount -= step * rates[unit]
                done = left[unit] <= step
            if done:
                self.spans.append(Span(task.index, unit, task.start, self.now))
                self.events.append(Event(task.index, ends=True))
                self.ended.add(task.index)
                del self.active[unit]

    def _rates(self) -> dict[int, float]:
        units = self.backend.units
        moving = [u for u, task in self.active.items() if task.startup <= 0]
        shares = {port.name: port.bandwidth for port in self.backend.ports}
        through = {name: sum(units[u].port == name for u in moving) for name in shares}
        return {
            u: min(units[u].rate, shares[units[u].port] / through[units[u].port])
            if units[u].port
            else units[u].rate
            for u in moving
        }

    def _standstill(self) -> BraidError:
        index, instruction = next(queue[0] for queue in self.queues if queue)
        return BraidError(
            f"the stream stands still: instruction {index} waits for instruction "
            f"{instruction.amount}, which cannot end",
            hint="a sync may only wait for an instruction that is issued before it",
        )
