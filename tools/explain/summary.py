"""A summary of a model in a few figures: where its time goes, and what limits it."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.tools.explain.kernel_rows import KernelRow
from braid.tools.explain.quantities import format_seconds

BETWEEN = "between kernels"
"""The kind of what is left of the time: starting kernels, and all that the host does."""
TRANSFERS = "transfers"
_ONE_PERCENT = 0.01
_LIMITS = {"memory": "memory bandwidth", "compute": "arithmetic"}


@dataclass(frozen=True)
class KindShare:
    """The seconds of all kernels of a kind, and how many they are."""

    kind: str
    seconds: float
    kernels: int


@dataclass(frozen=True)
class Times:
    """The seconds of one run by kinds, the most expensive first; they add up to `seconds`.

    `is_measured` says whether `seconds` were measured; otherwise they are the sum of the kernels'
    times, measured or predicted, and of predicted starts. What is between kernels may be negative:
    nothing is scaled to fit.
    """

    seconds: float
    predicted: float
    is_measured: bool
    median: float | None
    low: float | None
    high: float | None
    measured_kernels: int
    between: float
    kinds: tuple[KindShare, ...]
    reorders: float
    recomputed: float
    bottleneck: str


def times_of(
    rows: Sequence[KernelRow],
    wall: float | None = None,
    quartiles: tuple[float, float, float] | None = None,
    transfers: float = 0.0,
) -> Times:
    """Return the times of a model with these kernels, which took `wall` seconds by the clock.

    `transfers` are predicted seconds between devices; the clock has them in what is between.
    """
    kernels = sum(row.time for row in rows)
    starts = sum(row.starts for row in rows if row.measured is None)
    moved = transfers if wall is None else 0.0
    seconds = kernels + starts + moved if wall is None else wall
    between = starts if wall is None else seconds - kernels
    low, median, high = quartiles or (None, None, None)
    return Times(
        seconds,
        sum(row.predicted + row.starts for row in rows) + transfers,
        wall is not None,
        median,
        low,
        high,
        sum(row.measured is not None for row in rows),
        between,
        _kinds(rows, between, moved),
        sum(row.time for row in rows if row.is_reorder),
        sum(row.time for row in rows if row.is_recomputed),
        bottleneck(rows, seconds, between, moved),
    )


def _kinds(rows: Sequence[KernelRow], between: float, moved: float) -> tuple[KindShare, ...]:
    found: dict[str, list[KernelRow]] = {}
    for row in rows:
        found.setdefault(row.kind, []).append(row)
    kinds = [KindShare(kind, sum(r.time for r in own), len(own)) for kind, own in found.items()]
    kinds.append(KindShare(BETWEEN, between, 0))
    if moved:
        kinds.append(KindShare(TRANSFERS, moved, 0))
    return tuple(sorted(kinds, key=lambda kind: -kind.seconds))


def bottleneck(
    rows: Sequence[KernelRow], seconds: float, between: float = 0.0, moved: float = 0.0
) -> str:
    """Return what takes most of the time, and what limits it, in a sentence or two."""
    if not rows or seconds <= 0:
        return "Nothing takes time."
    row = max(rows, key=lambda each: each.time)
    text = _of_many(rows, row, seconds, between, moved)
    known = "takes" if row.measured is not None else "is predicted to take"
    text += f"{row.name} on {row.device} {known} {format_seconds(row.time)}"
    text += f", {_percent(row.time / seconds)} of one run"
    share = row.roofline_share
    if row.roofline is None:
        return f"{text}; nothing is known of its roofline."
    limit = _LIMITS.get(row.roofline.limit, f"'{row.roofline.limit}'")
    if share is None:
        return f"{text}, which is what {limit} takes at the least: nothing else predicts it."
    text += f", at {_percent(share)} of its roofline, which {limit} sets"
    if share > 1:
        text += " (its operands are in caches, or it computes less than plain loops do)"
    most = max(rows, key=lambda each: each.wasted)
    if most.wasted > _ONE_PERCENT * seconds:
        whose = "it" if most is row else most.name
        text += f". The roofline leaves most to gain in {whose}: {format_seconds(most.wasted)}"
    return f"{text}."


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= _ONE_PERCENT else f"{share:.1%}"


def _of_many(
    rows: Sequence[KernelRow], longest: KernelRow, seconds: float, between: float, moved: float
) -> str:
    """Return a sentence on what takes more than any single kernel that counts, else nothing."""
    if moved > max(longest.time, between, 0.1 * seconds):
        part = _percent(moved / seconds)
        return f"Transfers between devices are predicted to take {part} of one run. Of kernels, "
    if between > longest.time and between > 0.1 * seconds:
        return (
            f"Starting {len(rows)} kernels, and what the host does between them, takes "
            f"{between / seconds:.0%} of one run. Of kernels, "
        )
    alike = [row for row in rows if row.kind == longest.kind]
    together = sum(row.time for row in alike) / seconds
    if longest.time < 0.1 * seconds and len(alike) > 1:
        return f"{len(alike)} kernels of {longest.kind} take {together:.0%} of one run. Of them, "
    return ""
