"""A timeline for people: a table, and a Gantt chart as one HTML page that needs no network."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from braid.analysis.simulator.instructions import Stream
from braid.analysis.simulator.simulate import Timeline
from braid.targets.target import Backend

WIDTH = 1200
ROW = 34
LEFT = 90

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:14px sans-serif;margin:24px}}rect:hover{{stroke:#000}}text{{font-size:12px}}
pre{{background:#f4f4f4;padding:8px}}</style>
<h1>{title}</h1><pre>{table}</pre>
<svg width="{width}" height="{height}" role="img">
{rows}
</svg></html>
"""


@dataclass(frozen=True)
class UnitTime:
    """Seconds of one unit: busy, stalled with work left, idle after its last instruction."""

    name: str
    busy: float
    stalled: float
    idle: float


@dataclass(frozen=True)
class Bar:
    """One instruction of a chart: its unit, its op, from when to when in seconds."""

    unit: str
    op: str
    start: float
    end: float


@dataclass(frozen=True)
class Report:
    """What a simulation says, as plain data for charts and files (`dataclasses.asdict`)."""

    seconds: float
    peak_bytes: int
    units: tuple[UnitTime, ...]
    bars: tuple[Bar, ...]


def report(timeline: Timeline, stream: Stream, backend: Backend) -> Report:
    """The timeline of `stream` with the names of units and ops."""
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


def unit_times(timeline: Timeline, backend: Backend) -> tuple[UnitTime, ...]:
    """The times of every unit, in the order of the backend."""
    return tuple(
        UnitTime(unit.name, busy, stalled, timeline.seconds - busy - stalled)
        for unit, busy, stalled in zip(backend.units, timeline.busy, timeline.stalled, strict=True)
    )


def table(timeline: Timeline, backend: Backend) -> str:
    """Seconds per unit: busy, waiting with work left, and done early; then total and memory."""
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


def gantt_page(timeline: Timeline, stream: Stream, backend: Backend, title: str) -> str:
    """The page: a row per unit, a bar per instruction, coloured by op, named when pointed at."""
    height = ROW * len(backend.units) + 30
    return _PAGE.format(
        title=escape(title),
        table=escape(table(timeline, backend)),
        width=WIDTH + LEFT,
        height=height,
        rows="\n".join(_rows(timeline, stream, backend)),
    )


def _rows(timeline: Timeline, stream: Stream, backend: Backend) -> Iterator[str]:
    scale = WIDTH / timeline.seconds if timeline.seconds else 0.0
    for number, unit in enumerate(backend.units):
        yield f'<text x="0" y="{number * ROW + 20}">{escape(unit.name)}</text>'
    for span in timeline.spans:
        op = stream.instructions[span.index].op
        left, length = LEFT + span.start * scale, (span.end - span.start) * scale
        label = f"{stream.ops[op]}: {1e6 * span.start:.3f} to {1e6 * span.end:.3f} us"
        yield (
            f'<rect x="{left:.2f}" y="{span.unit * ROW + 4}" width="{max(length, 0.5):.2f}" '
            f'height="{ROW - 10}" fill="hsl({op * 137 % 360} 60% 65%)">'
            f"<title>{escape(label)}</title></rect>"
        )
    bottom = len(backend.units) * ROW + 20
    yield f'<text x="{LEFT}" y="{bottom}">0</text>'
    yield (
        f'<text x="{LEFT + WIDTH}" y="{bottom}" text-anchor="end">'
        f"{1e6 * timeline.seconds:.3f} us</text>"
    )
