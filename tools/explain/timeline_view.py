"""An instruction stream on a chip: what each unit does when."""

from braid.targets.simulator.report import Report
from braid.tools.explain.views import Bar, Table, TimelineView

MICROSECONDS = 1e6


def timeline_view(report: Report) -> TimelineView:
    """Return the Gantt chart of a simulated stream, coloured by op, with the times of all units."""
    lanes = tuple(unit.name for unit in report.units)
    ops = {name: index for index, name in enumerate(dict.fromkeys(b.op for b in report.bars))}
    bars = tuple(
        Bar(
            lanes.index(bar.unit),
            bar.start * MICROSECONDS,
            bar.end * MICROSECONDS,
            bar.op,
            ops[bar.op],
        )
        for bar in report.bars
    )
    rows = tuple(
        (unit.name, *(f"{MICROSECONDS * s:.3f}" for s in (unit.busy, unit.stalled, unit.idle)))
        for unit in report.units
    )
    summary = f"{MICROSECONDS * report.seconds:.3f} µs in all."
    table = Table(("unit", "busy µs", "stalled µs", "idle µs"), rows)
    return TimelineView("Timeline", summary, lanes, bars, "µs", table)
