"""The search for the schedule of one kernel, which stops where searching does not pay.

The baseline is the time of a vendor's kernel, or of the default schedule where there is none. The
coarsest space of schedules is measured first. If its best one is so slow that `ratio`, baseline ÷
best, is below the threshold, finer spaces are not worth their time. Otherwise the threshold is
raised and the next level of the space is measured too, until the ratio falls below the threshold of
its level, the last level is reached, or the budget is spent. No IR and no clock of its own: what is
measured, and how, is the caller's.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

P = TypeVar("P", bound=Hashable)
"""A point of the space: all that a kernel is made by."""

RAISE = 0.1
"""By which the threshold grows from level to level where no more are given."""


class Stop(StrEnum):
    """Why a search went no further than a level; the words are for people."""

    BELOW = "the ratio is below the threshold"
    LAST = "there is no finer level"
    BUDGET = "the budget is spent"
    USER = "it was told to stop"
    PREDICTED = "nothing better is predicted"


class Final(StrEnum):
    """Which of what was measured is the result.

    `FASTEST` is the fastest of everything, the baseline included. `THRESHOLD` takes the rule by its
    letter: the baseline where level 0 falls below its threshold, else the best schedule at the
    level that fell below, and where none did, the best one if it beats the baseline.
    """

    FASTEST = "fastest"
    THRESHOLD = "threshold"


@dataclass(frozen=True)
class Rule:
    """When a search goes on.

    `thresholds` are those of levels 0, 1, …; later levels have the last one and `RAISE` for each
    level more. At most `trials` points are measured, and at most `levels` levels looked at.
    """

    thresholds: Sequence[float] = (0.7, 1.0, 1.1)
    levels: int = 3
    trials: int | None = None
    final: Final = Final.FASTEST

    def threshold(self, level: int) -> float:
        """The least ratio at which the level after this one is worth its time."""
        beyond = max(0, level - len(self.thresholds) + 1)
        return self.thresholds[min(level, len(self.thresholds) - 1)] + beyond * RAISE


@dataclass(frozen=True)
class Step:
    """One level: of `size` points, `tried` were measured and `failed` of these gave no time.

    `best` are the seconds of the fastest so far, None where all failed, and `ratio` is baseline ÷
    best. `stop` is None where the search went on.
    """

    level: int
    size: int
    tried: int
    failed: int
    best: float | None
    ratio: float
    threshold: float
    stop: Stop | None

    def __str__(self) -> str:
        """One line for people; microseconds."""
        best = "none ran" if self.best is None else f"best {self.best * 1e6:.4g} µs"
        failed = f", {self.failed} failed" if self.failed else ""
        why = "goes on" if self.stop is None else f"stops: {self.stop}"
        return (
            f"level {self.level}: {self.tried} of {self.size} schedules tried{failed}, {best}, "
            f"ratio {self.ratio:.3g}, threshold {self.threshold:.3g}; {why}"
        )


@dataclass(frozen=True)
class Found(Generic[P]):
    """What a search found: `point` takes `seconds`; None is the baseline, of `baseline` seconds.

    `times` are the seconds of all points that ran.
    """

    point: P | None
    seconds: float
    baseline: float
    steps: tuple[Step, ...]
    times: dict[P, float] = field(default_factory=dict[P, float])


def search(
    space: Callable[[int], Iterable[P]],
    measure: Callable[[P], float | None],
    baseline: float,
    rule: Rule | None = None,
    *,
    known: dict[P, float] | None = None,
    is_spent: Callable[[], bool] = lambda: False,
    goes_on: Callable[[Step], bool] = lambda _: True,
) -> Found[P]:
    """Searches `space`, a function from levels to their points, the most promising first.

    `measure` gives the seconds of a point, None where it failed; `baseline` are those to beat.
    Points in `known` were measured before and cost no trial. `is_spent` is asked before each trial
    whether the budget is spent, `goes_on` after each level that would not be the last.
    """
    rule = rule or Rule()
    times, seen = dict(known or {}), set[P]()
    steps: list[Step] = []
    trials = 0
    for level in range(rule.levels):
        points = [p for p in dict.fromkeys(space(level)) if p not in seen]
        seen.update(points)
        tried, failed, spent = 0, 0, False
        for point in points:
            if point in times:
                continue
            spent = is_spent() or (rule.trials is not None and trials >= rule.trials)
            if spent:
                break
            seconds = measure(point)
            trials, tried = trials + 1, tried + 1
            if seconds is None:
                failed += 1
            else:
                times[point] = seconds
        best = min((t for p, t in times.items() if p in seen), default=None)
        ratio = 0.0 if best is None else _ratio(baseline, best)
        threshold = rule.threshold(level)
        stop = Stop.BUDGET if spent else Stop.BELOW if ratio < threshold else None
        if stop is None and level == rule.levels - 1:
            stop = Stop.LAST
        step = Step(level, len(points), tried, failed, best, ratio, threshold, stop)
        if stop is None and not goes_on(step):
            step = Step(level, len(points), tried, failed, best, ratio, threshold, Stop.USER)
        steps.append(step)
        if step.stop is not None:
            break
    times = {point: seconds for point, seconds in times.items() if point in seen}
    point = chosen(times, baseline, steps[-1], rule.final)
    seconds = baseline if point is None else times[point]
    return Found(point, seconds, baseline, tuple(steps), times)


def chosen(times: dict[P, float], baseline: float, last: Step, final: Final) -> P | None:
    """The result by `final`, of all times, when `last` was the last step; None is the baseline."""
    if not times:
        return None
    best = min(times, key=lambda point: times[point])
    if final is Final.THRESHOLD and last.stop is Stop.BELOW:
        return best if last.level > 0 else None
    return best if times[best] < baseline else None


def _ratio(baseline: float, best: float) -> float:
    return baseline / best if best > 0 else float("inf")
