"""The search for the schedule of one kernel, which stops where searching does not pay.

The baseline is the time of a vendor's kernel, else of the default schedule. The
coarsest space of schedules is measured first. If its best one is so slow that `ratio`, baseline ÷
best, is below the threshold, finer spaces are not worth their time. Otherwise the threshold is
raised and the next level of the space is measured too, until the ratio falls below the threshold of
its level, the last level is reached, or the budget is spent. While the baseline is ahead, a level
ends before all of its points are measured if the spread of what was measured leaves too little to
expect of the rest. It has no IR and no clock: the caller decides what is measured, and how.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from braid.tuning.prospects import expected_gain

P = TypeVar("P", bound=Hashable)
"""A point of the space: all that a kernel is made by."""

RAISE = 0.1
"""The factor by which the threshold grows from level to level where no more are given."""
LEAST_GAIN = 0.01
"""A gain in time that no search claims, however still the machine seems."""
_LEAST_OF_LEVEL = 2
"""Points of a level that are measured however little it promises: fewer show no spread."""


class Stop(StrEnum):
    """The reason why a search went no further than a level; the words are for people."""

    BELOW = "the ratio is below the threshold"
    LAST = "there is no finer level"
    BUDGET = "the budget is spent"
    USER = "the user stopped it"
    PREDICTED = "nothing better is predicted"


class Final(StrEnum):
    """Rules that select the result among the measured schedules.

    `FASTEST` is the fastest of everything, the baseline included. `THRESHOLD` is the baseline where
    level 0 falls below its threshold, however fast its best schedule is; else the best schedule
    measured until a level falls below, even if the baseline is faster; and where none does, the
    best one if it beats the baseline.
    """

    FASTEST = "fastest"
    THRESHOLD = "threshold"


@dataclass(frozen=True)
class Rule:
    """A rule for when a search goes on.

    `thresholds` are those of levels 0, 1, …; later levels have the last one plus `RAISE` for each
    further level. At most `trials` points are measured, and at most `levels` levels looked at.
    While the baseline is ahead, a level ends where its rest is not expected to gain `least_gain` of
    the time; 0 measures all.
    """

    thresholds: Sequence[float] = (0.7, 1.0, 1.1)
    levels: int = 3
    trials: int | None = None
    final: Final = Final.FASTEST
    least_gain: float = LEAST_GAIN

    def threshold(self, level: int) -> float:
        """Return the least ratio at which the level after this one is worth its time."""
        beyond = max(0, level - len(self.thresholds) + 1)
        return self.thresholds[min(level, len(self.thresholds) - 1)] + beyond * RAISE


@dataclass(frozen=True)
class LevelResult:
    """One level: of `size` points, `tried` were measured and `failed` of these gave no time.

    The last `spared` ones promised too little. `best` are the seconds of the fastest so far, None
    where all failed, and `ratio` is baseline ÷ best. `stop` is None if the search continued.
    """

    level: int
    size: int
    tried: int
    failed: int
    best: float | None
    ratio: float
    threshold: float
    stop: Stop | None
    spared: int = 0

    def __str__(self) -> str:
        """Return one line for people, in microseconds."""
        best = "none ran" if self.best is None else f"best {self.best * 1e6:.4g} µs"
        failed = f", {self.failed} failed" if self.failed else ""
        spared = f", {self.spared} promise too little" if self.spared else ""
        why = "goes on" if self.stop is None else f"stops: {self.stop}"
        return (
            f"level {self.level}: {self.tried} of {self.size} schedules tried{failed}{spared}, "
            f"{best}, ratio {self.ratio:.3g}, threshold {self.threshold:.3g}; {why}"
        )

    @property
    def fields(self) -> dict[str, Any]:
        """Fields as records have them; no number where the ratio is infinite."""
        return asdict(self) | {"ratio": self.ratio if math.isfinite(self.ratio) else None}

    @staticmethod
    def of(fields: Mapping[str, Any]) -> "LevelResult | None":
        """Return the result with these fields; None if they are invalid."""
        try:
            stop, ratio = fields["stop"], fields["ratio"]
            known: dict[str, Any] = dict(fields)
            known["stop"] = None if stop is None else Stop(stop)
            known["ratio"] = math.inf if ratio is None else ratio
            step = LevelResult(**known)
            return step if str(step) else None
        except (KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True)
class Found(Generic[P]):
    """The result of a search: `point` takes `seconds`; None is the baseline, of `baseline` seconds.

    `times` are the seconds of all points that ran.
    """

    point: P | None
    seconds: float
    baseline: float
    steps: tuple[LevelResult, ...]
    times: dict[P, float] = field(default_factory=dict[P, float])


@dataclass(frozen=True)
class Turn(Generic[P]):
    """The state of a search between levels: `points` are those that `level` would look at next.

    `threshold` is that of the next level, `step` the last one, None before the first. Its `stop` is
    the decision of the rule, which `Order` may overrule.
    """

    level: int
    points: Sequence[P]
    threshold: float
    step: LevelResult | None


@dataclass(frozen=True)
class Order(Generic[P]):
    """The orders of the user between levels; without any, the rule decides.

    `threshold` holds for the level just searched, and for those to come; `level` is the next one,
    whatever the rule decides; of its space only `points` are searched, if they are given.
    """

    stop: bool = False
    threshold: float | None = None
    level: int | None = None
    points: Sequence[P] | None = None


def search(
    space: Callable[[int], Iterable[P]],
    measure: Callable[[P], float | None],
    baseline: float,
    rule: Rule | None = None,
    *,
    known: dict[P, float] | None = None,
    is_spent: Callable[[], bool] = lambda: False,
    steer: Callable[[Turn[P]], Order[P]] | None = None,
) -> Found[P]:
    """Search `space`, a function from levels to their points, the most promising first.

    `measure` gives the seconds of a point, None where it failed; `baseline` are those to beat.
    Points in `known` were measured before and cost no trial. `is_spent` is asked before each trial
    whether the budget is spent, `steer` before the first level, and after each of them.
    """
    state = _LevelSearch(
        space, measure, baseline, rule or Rule(), is_spent, steer, dict(known or {})
    )
    return state.run()


@dataclass
class _LevelSearch(Generic[P]):
    """A search under way: `times` of points, those that were `seen`, and the steps so far."""

    space: Callable[[int], Iterable[P]]
    measure: Callable[[P], float | None]
    baseline: float
    rule: Rule
    is_spent: Callable[[], bool]
    steer: Callable[[Turn[P]], Order[P]] | None
    times: dict[P, float]
    seen: set[P] = field(default_factory=set[P])
    steps: list[LevelResult] = field(default_factory=list[LevelResult])
    trials: int = 0
    threshold: float | None = None

    def run(self) -> Found[P]:
        """Run the search from level to level."""
        order = self._asked(0, None)
        level = None if order.stop else 0 if order.level is None else order.level
        while level is not None:
            step = self._judged(self._step(level, order.points), self.rule.levels - 1)
            order = self._asked(level + 1, step)
            self.steps.append(step := self._ordered(step, order))
            level = None if step.stop else level + 1 if order.level is None else order.level
        times = {point: seconds for point, seconds in self.times.items() if point in self.seen}
        point = chosen(times, self.baseline, self.steps[-1], self.rule.final) if times else None
        seconds = self.baseline if point is None else times[point]
        return Found(point, seconds, self.baseline, tuple(self.steps), times)

    def _step(self, level: int, only: Sequence[P] | None) -> LevelResult:
        """Measure the points of a level, as far as the budget goes."""
        every = self.space(level) if only is None else only
        points = [p for p in dict.fromkeys(every) if p not in self.seen]
        self.seen.update(points)
        tried, failed, spared, spent = 0, 0, 0, False
        for number, point in enumerate(points):
            if point in self.times:
                continue
            left = len(points) - number
            if only is None and tried >= _LEAST_OF_LEVEL and self._promises_little(left):
                spared = left
                self.seen.difference_update(p for p in points[number:] if p not in self.times)
                break
            limit = self.rule.trials
            spent = self.is_spent() or (limit is not None and self.trials >= limit)
            if spent:
                break
            seconds = self.measure(point)
            self.trials, tried = self.trials + 1, tried + 1
            if seconds is None:
                failed += 1
            else:
                self.times[point] = seconds
        best = self._best()
        ratio = 0.0 if best is None else _ratio(self.baseline, best)
        stop = Stop.BUDGET if spent else None
        limit = self._limit(level)
        return LevelResult(level, len(points), tried, failed, best, ratio, limit, stop, spared)

    def _best(self) -> float | None:
        return min((t for p, t in self.times.items() if p in self.seen), default=None)

    def _promises_little(self, left: int) -> bool:
        """Return whether this many more points are not expected to be worth their time."""
        best = self._best()
        if best is None or best < self.baseline:
            return False
        times = [seconds for point, seconds in self.times.items() if point in self.seen]
        incumbent = best if self.rule.final is Final.THRESHOLD else self.baseline
        return expected_gain(times, left, incumbent) < self.rule.least_gain

    def _limit(self, level: int) -> float:
        return self.rule.threshold(level) if self.threshold is None else self.threshold

    def _judged(self, step: LevelResult, last: int) -> LevelResult:
        """Return the step with the verdict of the rule."""
        if step.stop is Stop.BUDGET:
            return step
        below = step.ratio < step.threshold
        stop = Stop.BELOW if below else Stop.LAST if step.level >= last else None
        return replace(step, stop=stop)

    def _asked(self, level: int, step: LevelResult | None) -> Order[P]:
        """Return the user's answer; the user is not asked if nothing can follow."""
        if self.steer is None or (step is not None and step.stop is Stop.BUDGET):
            return Order()
        offered = self.space(level) if level < self.rule.levels else ()
        points = [point for point in offered if point not in self.seen]
        order = self.steer(Turn(level, points, self._limit(level), step))
        self.threshold = self.threshold if order.threshold is None else order.threshold
        return order

    def _ordered(self, step: LevelResult, order: Order[P]) -> LevelResult:
        """Return `step` with the user's decision."""
        if order.stop:
            return replace(step, stop=Stop.USER)
        if order.threshold is not None:
            step = self._judged(replace(step, threshold=order.threshold), self.rule.levels - 1)
        return step if order.level is None else replace(step, stop=None)


def chosen(times: dict[P, float], baseline: float, last: LevelResult, final: Final) -> P | None:
    """Return the result by `final`, of all times, when `last` was the last step; None is the
    baseline.
    """
    if not times:
        return None
    best = min(times, key=lambda point: times[point])
    if final is Final.THRESHOLD and last.stop is Stop.BELOW:
        return best if last.level > 0 else None
    return best if times[best] < baseline else None


def _ratio(baseline: float, best: float) -> float:
    return baseline / best if best > 0 else float("inf")
