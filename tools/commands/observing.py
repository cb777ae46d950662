"""Observed runs: the timeline of one of them, and hardware counters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from braid.analysis.profile.profile_file import Counted, OpRecord, ProfileRecord, Span

if TYPE_CHECKING:
    from braid.runtime.model import Model
    from braid.runtime.traces import Trace, TraceEvent

_TRACED = 7
"""Traced runs; the fastest is kept: whatever else the machine does makes one longer."""
_COUNTED = 3


@dataclass(frozen=True)
class Observations:
    """The timeline of one run, and the hardware counters of each profile counter."""

    timeline: tuple[Span, ...] = ()
    counted: Counted = field(default_factory=Counted)
    counters: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict[str, Mapping[str, float]]
    )

    def added_to(self, profile: ProfileRecord) -> ProfileRecord:
        """Return the profile with all of this."""
        ops = {name: self._counted(name, record) for name, record in profile.ops.items()}
        return replace(profile, ops=ops, timeline=self.timeline, counted=self.counted)

    def _counted(self, name: str, record: OpRecord) -> OpRecord:
        layouts = {
            choice: replace(each, counters=dict(self.counters.get(f"{name}\t{choice}", {})))
            for choice, each in record.layouts.items()
        }
        total = dict(self.counters.get(name, {}))
        for each in layouts.values():
            for counter, value in each.counters.items():
                total[counter] = total.get(counter, 0.0) + value
        return replace(record, layouts=layouts, counters=total)


def observe(
    opened: "Model", call: Callable[[], object], begin: Callable[[], None] = lambda: None
) -> Observations:
    """Run a model with profile counters a few times more, first traced, then counted.

    Each run is a `call` after `begin`. Neither is part of the times that are measured: reading
    counters takes a while.
    """
    with opened.traced() as trace:
        for _ in range(_TRACED):
            begin()
            call()
    with opened.counted() as counters:
        for _ in range(_COUNTED):
            begin()
            call()
    report = counters.report()
    by_name: dict[str, dict[str, float]] = {}
    for counter, values in report.values.items():
        for name, value in values.items():
            by_name.setdefault(name, {})[counter] = value
    return Observations(_timeline(trace), Counted(_COUNTED, report.missing), by_name)


def trace_events(opened: "Model", call: Callable[[], object]) -> bytes:
    """Call `call`, and return what runs and streams of the model did meanwhile.

    The bytes are a file of trace events, which Chrome and Perfetto open.
    """
    with opened.traced() as trace:
        call()
    with TemporaryDirectory(prefix="braid-trace-") as directory:
        file = Path(directory) / "trace.json"
        trace.write(file)
        return file.read_bytes()


def _timeline(trace: "Trace") -> tuple[Span, ...]:
    """Return the spans of the fastest run."""
    from braid.runtime.traces import EventKind

    events = trace.events()
    runs = [e for e in events if e.kind is EventKind.RUN]
    if not runs:
        return ()
    run = min(runs, key=lambda e: e.seconds)
    within = [e for e in events if run.begin <= e.begin and e.end <= run.end]
    threads = {place: f"thread {n + 1}" for n, place in enumerate(_threads(run, within))}
    found = [e for e in within if e.kind in (EventKind.KERNEL, EventKind.LAUNCH)]
    callers = {e.place for e in found}
    parts = [e for e in within if e.kind is EventKind.PART and e.place not in callers]
    spans = [_span(e, run, threads) for e in found]
    return tuple(sorted([*spans, *_joined(parts, run, threads)], key=lambda span: span.begin))


def _threads(run: "TraceEvent", events: "list[TraceEvent]") -> list[str]:
    """Return the threads, first the one that runs the model."""
    from braid.runtime.traces import EventKind

    places = (e.place for e in events if e.kind in (EventKind.KERNEL, EventKind.PART))
    return list(dict.fromkeys([run.place, *places]))


def _span(event: "TraceEvent", run: "TraceEvent", threads: Mapping[str, str]) -> Span:
    place = threads.get(event.place, event.place)
    return Span(event.name, place, event.begin - run.begin, event.end - run.begin)


def _joined(parts: "list[TraceEvent]", run: "TraceEvent", threads: Mapping[str, str]) -> list[Span]:
    """Return what each thread did of each kernel, from its first part to its last."""
    last: dict[str, Span] = {}
    done: list[Span] = []
    for part in sorted(parts, key=lambda e: e.begin):
        span = _span(part, run, threads)
        before = last.get(span.place)
        if before is not None and before.name == span.name:
            last[span.place] = replace(before, end=span.end)
            continue
        if before is not None:
            done.append(before)
        last[span.place] = span
    return [*done, *last.values()]
