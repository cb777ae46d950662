"""Profiles of several runs: the sums of kernels, and how far runs are apart."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import quantiles
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from braid.analysis.profile.profile_file import OpRecord, ProfileRecord
from braid.support.errors import BraidError
from braid.tools.explain.quantities import format_seconds
from braid.tools.explain.views import Table

if TYPE_CHECKING:
    from braid.runtime.model import Model
    from braid.runtime.profile_entries import ProfileEntry

_SHOWN = 10
_FENCE = 1.5
_FEWEST = 8
"""The least number of runs for which quartiles are meaningful."""
BETWEEN = "between kernels"


class TimedRun(NamedTuple):
    """The seconds of a run by the clock, and what its kernels took.

    `preemptions` is how often the system took the CPU from this process meanwhile.
    """

    seconds: float
    entries: "Mapping[str, ProfileEntry]"
    preemptions: int = 0


def record_runs(
    opened: "Model",
    call: Callable[[], object],
    runs: int,
    warmup: int,
    begin: Callable[[], None] = lambda: None,
) -> list[TimedRun]:
    """Return the times of each run, after `begin`.

    Raises:
        BraidError: the model has no counters.

    """
    for _ in range(warmup):
        begin()
        call()
    found: list[TimedRun] = []
    for _ in range(runs):
        begin()
        opened.reset_profile()
        before, began = getrusage(RUSAGE_SELF).ru_nivcsw, perf_counter()
        call()
        seconds = perf_counter() - began
        preempted = getrusage(RUSAGE_SELF).ru_nivcsw - before
        found.append(TimedRun(seconds, opened.profile(), preempted))
    if not found[0].entries:
        raise BraidError(
            "the model has no profile counters",
            hint="give a model, or compile the artifact with braid compile --profile",
        )
    return found


def profile_of(
    model: Path,
    shapes: Mapping[str, tuple[int, ...]],
    runs: Sequence[TimedRun],
) -> ProfileRecord:
    """Return what these runs say together, without those that something disturbed.

    Quartiles are over runs of the model.
    """
    runs = undisturbed(runs)
    names = dict.fromkeys(name for run in runs for name in run.entries)
    ops = {
        name: _joined([run.entries[name] for run in runs if name in run.entries], len(runs))
        for name in names
    }
    wall = [run.seconds for run in runs]
    whole = OpRecord(len(wall), sum(wall), quartiles=_quartiles(wall, len(wall)))
    return ProfileRecord(str(model), shapes, ops, whole)


def undisturbed(runs: Sequence[TimedRun]) -> Sequence[TimedRun]:
    """Return the runs that waited for nothing but the model, as far as one can tell.

    A run that the system interrupts takes far longer, and one kernel of it seems slow. Where enough
    runs were not interrupted, others are left out; and so are those beyond an upper fence, which is
    Tukey's, 1.5 times the distance of the quartiles ("Exploratory Data Analysis", 1977, section
    2D), with twice that of the lower two: on a busy machine the third quartile is disturbed, too.
    """
    calm = [run for run in runs if not run.preemptions]
    runs = calm if len(calm) >= _FEWEST else runs
    if len(runs) < _FEWEST:
        return runs
    low, median, _ = _quartiles([run.seconds for run in runs], len(runs))
    return [run for run in runs if run.seconds <= median + _FENCE * 2 * (median - low)]


def _joined(entries: "Sequence[ProfileEntry]", runs: int) -> OpRecord:
    choices = dict.fromkeys(choice for entry in entries for choice in entry.layouts)
    return OpRecord(
        sum(entry.count for entry in entries),
        sum(entry.seconds for entry in entries),
        {
            choice: _joined([e.layouts[choice] for e in entries if choice in e.layouts], runs)
            for choice in choices
        },
        _quartiles([entry.seconds for entry in entries], runs),
    )


def _quartiles(seconds: Sequence[float], runs: int) -> tuple[float, float, float]:
    """Return the quartiles over all runs: in those that are missing it took nothing."""
    every = [*seconds, *[0.0] * (runs - len(seconds))]
    if len(every) == 1:
        return every[0], every[0], every[0]
    low, median, high = quantiles(every, n=4, method="inclusive")
    return low, median, high


def table_of(profile: ProfileRecord) -> Table:
    """Return the kernels that take most time, and the time between them, in one run of the
    model."""
    whole = profile.runs
    assert whole is not None and whole.seconds is not None
    runs, seconds = whole.count, whole.seconds
    ops = sorted(profile.ops.items(), key=lambda item: -(item[1].seconds or 0.0))
    kernels = sum(record.seconds or 0.0 for _, record in ops)
    rows = [_row(name, record, runs, seconds) for name, record in ops[:_SHOWN] if record.seconds]
    between = (BETWEEN, "", format_seconds((seconds - kernels) / runs), "", "")
    whole_row = ("one run", f"{runs:g}", format_seconds(seconds / runs), *_spread(whole))
    rows += [(*between, f"{(seconds - kernels) / seconds:.1%}"), (*whole_row, "100%")]
    return Table(("kernel", "runs", "mean", "median", "quartiles", "share"), tuple(rows))


def kernel_rows(profile: ProfileRecord) -> list[dict[str, object]]:
    """Return all kernels and the time between them, by their mean seconds in one run of the model.

    The seconds add up to those of a run; nothing is scaled to fit.
    """
    whole = profile.runs
    assert whole is not None and whole.seconds is not None
    kernels = {name: (record.seconds or 0.0) for name, record in profile.ops.items()}
    kernels[BETWEEN] = whole.seconds - sum(kernels.values())
    return [
        {"kernel": name, "seconds": seconds / whole.count, "share": seconds / whole.seconds}
        for name, seconds in sorted(kernels.items(), key=lambda item: -item[1])
    ]


def lines_of(profile: ProfileRecord) -> Iterator[str]:
    """Yield the hardware counters of one run of the model, and reasons for missing ones."""
    counted = profile.counted
    if not counted.runs:
        return
    totals: dict[str, float] = {}
    for record in profile.ops.values():
        for counter, value in record.counters.items():
            totals[counter] = totals.get(counter, 0.0) + value
    for counter, value in totals.items():
        yield f"{counter} of kernels, a run: {value / counted.runs:,.0f}"
    reasons: dict[str, list[str]] = {}
    for counter, why in counted.missing.items():
        reasons.setdefault(why, []).append(counter)
    for why, counters in reasons.items():
        yield f"not counted: {', '.join(counters)} ({why})"


def _row(name: str, record: OpRecord, runs: float, seconds: float) -> tuple[str, ...]:
    taken = record.seconds or 0.0
    share = f"{taken / seconds:.1%}"
    return name, f"{record.count:g}", format_seconds(taken / runs), *_spread(record), share


def _spread(record: OpRecord) -> tuple[str, str]:
    """Return the median, and the quartiles around it."""
    if record.quartiles is None:
        return "", ""
    low, median, high = map(format_seconds, record.quartiles)
    return median, f"{low} – {high}"
