"""From one subgraph, without regard to the rest of the model, to an object for the linker."""

import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import braid.lowering.npu
import braid.passes.order
import braid.solvers.ordering
import braid.targets.simulator
from braid.solvers.ordering import LatencyProblem, Residency, search
from braid.solvers.ordering.latency import restrict
from braid.solvers.ordering.native import find_library
from braid.targets.simulator.steps import UnitWork
from braid.targets.simulator.stream_object import Action, Event, StreamObject

Events = tuple[int, ...]
"""A token: the events that must have ended, ascending."""


@dataclass(frozen=True)
class SubgraphSource:
    """All that the object of a subgraph follows from.

    The first `imports` ops of `problem` represent ops of earlier subgraphs. The last op represents
    later subgraphs: it reads the values that stay on the chip. `steps` are those of the ops
    between. Where `search_seconds` is not 0, their order is searched for so long.
    """

    problem: LatencyProblem
    steps: tuple[tuple[UnitWork, ...], ...]
    imports: int
    search_seconds: float = 0.0

    @property
    def key(self) -> str:
        """Digest of the fields, and of the sources of the code that makes objects from them."""
        return hashlib.sha256(f"{_sources()}{self!r}".encode()).hexdigest()


_PACKAGES = (
    braid.solvers.ordering,
    braid.passes.order,
    braid.targets.simulator,
    braid.lowering.npu,
)
"""The packages whose sources make objects."""


@cache
def _sources() -> str:
    """Return the digest of braid's own sources: another version may make other objects."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for file in sorted(Path(package.__path__[0]).resolve().rglob("*.py")):
            digest.update(file.read_bytes())
    digest.update(find_library().read_bytes())
    return digest.hexdigest()


def compile_subgraph(source: SubgraphSource) -> StreamObject:
    """Return the object of a subgraph whose ops and values fit the chip.

    Values that are read several times stay on the chip while there is free memory, as in a stream
    of one piece.
    """
    problem, count = source.problem, len(source.problem)
    traffic = problem.traffic
    assert traffic is not None
    inner = list(range(source.imports, count - 1))
    if source.search_seconds > 0:
        local = restrict(problem, inner)
        stands = range(len(inner))
        found = search(local, time_limit=source.search_seconds, candidates=[stands])
        inner = [inner[place] for place in found.order]
    recorder = _Recorder(source)
    order = [*range(source.imports), *inner, count - 1]
    ahead = problem.ahead(order)
    recording = _RecordedResidency(
        problem.graph, traffic, recorder, ahead, source.imports, recorder=recorder
    )
    recording.run(order)
    return StreamObject(
        tuple(recorder.events),
        source.steps,
        tuple(traffic.makes.get(op, ()) for op in range(count)),
        tuple(value.size for value in traffic.values),
    )


class _Recorder:
    """Writes down what an order makes necessary."""

    start: Events = ()

    def __init__(self, source: SubgraphSource) -> None:
        self.imports = source.imports
        self.last = len(source.problem) - 1
        self.events: list[Event] = []
        self.current = 0

    def record(self, action: Action, subject: int, after: Events) -> Events:
        """Add an event, and return its token."""
        self.events.append(Event(action, self.current, subject, after))
        return (len(self.events) - 1,)

    def begin(self, op: int) -> None:
        """Count the instructions that follow as those of `op`."""
        self.current = op

    def join(self, first: Events, second: Events) -> Events:
        """Return when both have ended."""
        return tuple(sorted({*first, *second})) if first and second else first or second

    def load(self, value: int, after: Events) -> Events:
        """Load a value."""
        return self.record(Action.LOAD, value, after)

    def store(self, value: int, after: Events) -> Events:
        """Store a value, and return when that has ended."""
        return self.record(Action.STORE, value, after)

    def overwrite(self, value: int, after: Events) -> Events:
        """Hand the memory of a value over to the result of the op."""
        return self.record(Action.OVERWRITE, value, after)

    def compute(self, op: int, after: Events) -> Events:
        """Run an op; those of other subgraphs only enter and leave."""
        if op == self.last:
            return after
        action = Action.ENTER if op < self.imports else Action.COMPUTE
        return self.record(action, op, after)

    def release(self, value: int, after: Events) -> None:
        """Note that a value is no longer read."""
        self.record(Action.RELEASE, value, after)


@dataclass
class _RecordedResidency(Residency[Events]):
    """Lets the linker decide when memory is free, and passes on the values that are on the chip at
    the end."""

    recorder: _Recorder = field(kw_only=True)

    def _reserve(self, size: int) -> Events:
        if self.recorder.current < self.recorder.imports:
            return ()
        return self.recorder.record(Action.RESERVE, size, ())

    def _release(self, v: int) -> None:
        if self.recorder.current == self.recorder.last:
            self.recorder.record(Action.EXPORT, v, self.since[v])
        super()._release(v)
