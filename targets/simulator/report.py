"""A timeline for people: a table, and plain data for charts."""

from dataclasses import dataclass

from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Stream
from braid.targets.simulator.simulate import Timeline


@dataclass(frozen=True)
class UnitTime:
    """Seconds of one unit: busy, stalled with work left, idle after its last instruction."""

    name: str
    busy: float
    stalled: float
    idle: float


@dataclass(frozen=True)
class Bar:
    """One instruction of a chart: its unit, its op, and its begin and end in seconds."""

    unit: str
    op: str
    start: float
    end: float


@dataclass(frozen=True)
class Report:
    """The results of a simulation, as plain data for charts and files (`dataclasses.asdict`)."""

    seconds: float
    peak_bytes: int
    units: tuple[UnitTime, ...]
    bars: tuple[Bar, ...]


def report(timeline: Timeline, stream: Stream, backend: BackendDescription) -> Report:
    """Return the timeline of `stream` with the names of units and ops."""
    bars = tuple(
        Bar(
            backend.units[span.unit].name,
            stream.ops[stream.instructions[span.index].op],
            span.start,
            span.end,
        )
        for span in timeline.spans
    )
    return Report(timeline.seconds, timeline.peak_bytes, unit_times(timeline, backend), bars)


def unit_times(timeline: Timeline, backend: BackendDescription) -> tuple[UnitTime, ...]:
    """Return the times of every unit, in the order of the backend."""
    return tuple(
        UnitTime(unit.name, busy, stalled, timeline.seconds - busy - stalled)
        for unit, busy, stalled in zip(backend.units, timeline.busy, timeline.stalled, strict=True)
    )


def table(timeline: Timeline, backend: BackendDescription) -> str:
    """Return a table of seconds per unit: busy, waiting with work left, and done early; then total
    and memory.
    """
    lines = [f"{'unit':<10} {'busy us':>12} {'stalled us':>12} {'idle us':>12} {'use':>7}"]
    whole = timeline.seconds
    for unit in unit_times(timeline, backend):
        share = unit.busy / whole if whole else 0.0
        times = (unit.busy, unit.stalled, unit.idle)
        numbers = " ".join(f"{1e6 * seconds:>12.3f}" for seconds in times)
        lines.append(f"{unit.name:<10} {numbers} {share:>7.1%}")
    lines.append(f"total {1e6 * whole:.3f} us")
    if backend.memories:
        memory = backend.memories[0]
        lines.append(f"{memory.name} {timeline.peak_bytes} of {memory.bytes} bytes")
    return "\n".join(lines)
