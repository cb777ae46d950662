"""The first screen of the page as text: where the time goes, and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from braid.support.byte_sizes import format_size
from braid.tools.explain.kernel_rows import KernelRow, NextBest
from braid.tools.explain.quantities import format_seconds
from braid.tools.explain.views import Table

_SHOWN = 10
"""Kernels that are listed; the page and --json have all."""
_COLUMNS = (
    "kernel",
    "device",
    "predicted",
    "measured",
    "share",
    "roofline",
    "made by",
    "next best",
)


def listing(
    summary: Mapping[str, Any], rows: Sequence[KernelRow]
) -> tuple[tuple[str, ...], str, Table]:
    """Return lines on the whole model, the title of a table, and the table of its kernels."""
    most = sorted(rows, key=lambda row: -row.time)[:_SHOWN]
    known = "measured" if summary["is_measured"] else "predicted"
    kinds = [kind for kind in summary["kinds"] if kind["seconds"]][:5]
    shares = ", ".join(
        f"{kind['kind']} {kind['seconds'] / summary['seconds']:.0%}"
        for kind in kinds
        if summary["seconds"]
    )
    lines = [
        summary["bottleneck"],
        f"One run: {format_seconds(summary['seconds'])} {known}"
        + (f" ({shares})." if shares else "."),
    ]
    memory = summary["memory"]
    if memory is not None:
        arena, bound = memory["arena_bytes"], memory["lower_bound"]
        lines.append(
            f"Memory: arena {format_size(arena)} (no plan for this order is below "
            f"{format_size(bound)}), weights {format_size(memory['weights_bytes'])}."
        )
    title = f"{len(most)} of {len(rows)} kernels, those that take most:" if rows else ""
    table = Table(_COLUMNS, tuple(_row(row, summary["seconds"]) for row in most))
    return tuple(lines), title, table


def _row(row: KernelRow, seconds: float) -> tuple[str, ...]:
    best, share = row.next_best, row.roofline_share
    limit = "" if row.roofline is None else row.roofline.limit
    return (
        row.name,
        row.device,
        format_seconds(row.predicted),
        "-" if row.measured is None else format_seconds(row.measured.seconds),
        f"{row.time / seconds:.1%}" if seconds > 0 else "-",
        "-" if share is None else f"{share:.0%} {limit}",
        row.family,
        "none" if best is None else _next_text(best),
    )


def _next_text(best: NextBest) -> str:
    bound = "" if best.is_exact else "at most "
    extra = f"{bound}+{format_seconds(best.extra)}" if best.extra else "as good"
    return f"{best.what}: {extra}"
