"""Describe one kernel of a page as data: nothing here knows IR."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from braid.targets.costs.cost import Source
from braid.tools.explain.model_names import joined


@dataclass(frozen=True)
class Candidate:
    """One way to make a kernel that was weighed: layouts, and the family that makes it.

    `seconds` is the time of one run without the start, from `source`; `extra` is the additional
    time of the whole model with it, None if no choice of the others is compatible. They are exact
    where all other choices could be made anew for it, else an upper bound.
    """

    layouts: str
    family: str
    source: str
    seconds: float
    extra: float | None
    is_exact: bool = True
    is_taken: bool = False


@dataclass(frozen=True)
class Roofline:
    """The least seconds of all runs on the device, and the limiting resource: `compute` or
    `memory`.

    `parts` are the seconds by resource; `flops` and `bytes` are the amounts of one run by the
    model.
    """

    seconds: float
    limit: str
    parts: dict[str, float]
    flops: int
    bytes: int


@dataclass(frozen=True)
class Measured:
    """Seconds of all runs in one run of the model, the mean over those that a profile has.

    `low` and `high` are the quartiles over the profiled runs of the model, `median` is between
    them; None where the profile has sums alone. `counters` has the hardware counters of one run of
    the model, by name, without missing ones.
    """

    seconds: float
    median: float | None
    low: float | None
    high: float | None
    count: float
    counters: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Searched:
    """The record of a search: seconds of one run with the default schedule and with the one that
    was found.

    `kept` says whether the default schedule stayed, since nothing was faster.
    """

    default: float
    seconds: float
    kept: bool


@dataclass(frozen=True)
class NextBest:
    """The choice that would cost least instead of the one that was taken, and how much more."""

    what: str
    extra: float
    is_exact: bool


@dataclass(frozen=True)
class KernelRow:
    """A kernel, named after the model's ops that it computes.

    `ops` are the stable names of all its ops, `model_ops` the names in the model, and `computes`
    the kinds of its ops. `kind` is the most expensive kind, of the model's op `main` (empty without
    a name in the model). `predicted` are the seconds of its `runs` in one run of the model, without
    the time of its starts, which is `starts`. `placed` says why it runs on its device; it is empty
    where that is not known, or the target has no other.
    """

    id: int
    ops: tuple[str, ...]
    model_ops: tuple[str, ...]
    computes: tuple[str, ...]
    kind: str
    device: str
    runs: float
    predicted: float
    starts: float
    measured: Measured | None
    not_measured: str
    roofline: Roofline | None
    layouts: str
    results: tuple[str, ...]
    family: str
    schedule: str
    source: str
    reason: str
    candidates: tuple[Candidate, ...] = ()
    is_reorder: bool = False
    is_recomputed: bool = False
    main: str = ""
    searched: Searched | None = None
    placed: str = ""

    @property
    def name(self) -> str:
        """The model's ops in it."""
        return joined(self.model_ops) or self.kind

    @property
    def time(self) -> float:
        """The seconds that were measured, else those that are predicted."""
        return self.predicted if self.measured is None else self.measured.seconds

    @property
    def roofline_share(self) -> float | None:
        """Return the roofline's share of its time; None if either is unknown or the time is 0.

        A prediction that is the roofline itself says nothing of how near a kernel comes to it.
        """
        is_roofline = self.measured is None and self.source == str(Source.ROOFLINE)
        if self.roofline is None or not self.time or is_roofline:
            return None
        return self.roofline.seconds / self.time

    @property
    def wasted(self) -> float:
        """The seconds that the roofline leaves."""
        return 0.0 if self.roofline is None else max(0.0, self.time - self.roofline.seconds)

    @property
    def next_best(self) -> NextBest | None:
        """The candidate that costs least of those that were not taken."""
        others = [c for c in self.candidates if not c.is_taken and c.extra is not None]
        if not others:
            return None
        best = min(others, key=_extra)
        taken = next((c for c in self.candidates if c.is_taken), None)
        is_other_kernel = taken is not None and best.layouts == taken.layouts
        what = best.family if is_other_kernel else f"{best.layouts} {best.family}".rstrip()
        return NextBest(what, _extra(best), best.is_exact)


def _extra(candidate: Candidate) -> float:
    return float("inf") if candidate.extra is None else candidate.extra
