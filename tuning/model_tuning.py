"""The search of a kernel's schedules by a learned model, which remembers other kernels.

Measurements are kept in this user's record store, as times relative to the default schedule's;
the model of a later search learns from it, where the schedules have the same entries.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.regions import FusedOp
from braid.support.records.record_store import Fields, Record, RecordStore, default_store
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.identity import processor_name
from braid.tuning.model_search import ModelRule, ModelSearch, Row, numeric_features
from braid.tuning.search import Found, LevelResult, Rule, Stop, chosen

TRIALS = "trials"
"""The kind of these records: all that was measured of one kernel."""

_ENOUGH = 1 << 12
"""Points of other kernels that a model learns from, the latest ones."""
_TRIALS = 200
"""Schedules of a kernel that are measured where nothing else is said."""
_ABSENT = -1.0
"""The entry of a schedule whose family has no such entry."""


@dataclass(frozen=True)
class Points:
    """Schedules as rows of numbers: the index of the family, then an entry for each name in any
    family."""

    families: tuple[str, ...]
    names: tuple[str, ...]
    shape: Row

    @staticmethod
    def of(space: Sequence[KernelSchedule], group: FusedOp) -> "Points":
        """Return the form of rows for the schedules of `group`."""
        families = tuple(sorted({point.family for point in space}))
        names = tuple(sorted({name for point in space for name, _ in point.items}))
        return Points(families, names, _shape_features(group))

    def entries(self, point: KernelSchedule) -> Row:
        """Return the entries of the schedule of a point, as the model sees them."""
        schedule = point.schedule
        family = float(self.families.index(point.family))
        return (family, *(float(schedule.get(name, _ABSENT)) for name in self.names))

    def features(self, point: KernelSchedule) -> Row:
        """Return the features of it for the model: the same for kernels whose schedules have these
        names.
        """
        return (*numeric_features(self.entries(point)), *self.shape)

    @property
    def kind(self) -> str:
        """Equal where rows mean the same."""
        return " ".join((*self.families, *self.names))


def search_by_model(
    space: Callable[[int], Sequence[KernelSchedule]],
    measure: Callable[[KernelSchedule], float | None],
    baseline: float,
    rule: Rule,
    group: FusedOp,
    key: str,
    *,
    is_spent: Callable[[], bool] = lambda: False,
    store: RecordStore | None = None,
) -> Found[KernelSchedule]:
    """Search all levels of `rule` at once; what was measured is recorded under `key`.

    The other parameters are those of `search`. Raises BraidError where LightGBM is not installed,
    or the store cannot be written.
    """
    points = list(dict.fromkeys(p for level in range(rule.levels) for p in space(level)))
    rows = Points.of(points, group)
    store = store or default_store()
    width = len(rows.features(points[0])) if points else 0
    known = _known(store, rows, key, width)
    trials = _TRIALS if rule.trials is None else rule.trials
    search = ModelSearch(
        points, rows.entries, rows.features, ModelRule(trials), known=known, times={}
    )
    first = measure(points[0]) if points and trials else None
    scale = first or baseline
    if points and trials:
        search.times[points[0]] = None if first is None else first / scale

    def relative(point: KernelSchedule) -> float | None:
        seconds = measure(point)
        return None if seconds is None else seconds / scale

    search.run(relative, is_spent=is_spent)
    times = {point: t * scale for point, t in search.times.items() if t is not None}
    _append(store, rows, key, search.times)
    spent = is_spent() or len(search.times) >= min(trials, len(points))
    step = _step(rule, points, search.times, times, baseline, spent)
    point = chosen(times, baseline, step, rule.final)
    seconds = baseline if point is None else times[point]
    return Found(point, seconds, baseline, (step,), times)


def _step(
    rule: Rule,
    points: Sequence[KernelSchedule],
    tried: Mapping[KernelSchedule, float | None],
    times: Mapping[KernelSchedule, float],
    baseline: float,
    spent: bool,
) -> LevelResult:
    best = min(times.values(), default=None)
    ratio = baseline / best if best else 0.0
    level = rule.levels - 1
    stop = Stop.LAST if len(tried) == len(points) else Stop.BUDGET if spent else Stop.PREDICTED
    failed = len(tried) - len(times)
    return LevelResult(
        level, len(points), len(tried), failed, best, ratio, rule.threshold(level), stop
    )


def _shape_features(group: FusedOp) -> Row:
    """Return the sizes of the result and of what is read, by powers of two."""
    result = shape_of(group.outputs[0])
    sizes = [math.prod(shape_of(value)) for value in group.inputs[:2]]
    numbers = [math.prod(result), result[-1] if result else 1, *sizes, *[1] * (2 - len(sizes))]
    return tuple(math.log2(1 + number) for number in numbers)


def _append(
    store: RecordStore,
    rows: Points,
    key: str,
    times: Mapping[KernelSchedule, float | None],
) -> None:
    measured = {point: t for point, t in times.items() if t is not None and t > 0}
    if not measured:
        return
    value: dict[str, Any] = {
        "kind": rows.kind,
        "rows": [rows.features(point) for point in measured],
        "logs": [math.log(t) for t in measured.values()],
    }
    store.append([Record(TRIALS, key, value, processor_name())])


def _known(store: RecordStore, rows: Points, key: str, width: int) -> tuple[list[Row], list[float]]:
    """Return what was measured of other kernels whose rows mean the same, on such a processor.

    Records of a braid that saw other features of schedules have rows that are not of this `width`.
    """
    found: list[Row] = []
    logs: list[float] = []
    for other, value in store.read(TRIALS).items():
        if other == key or value.get("kind") != rows.kind:
            continue
        more, targets = trials_of(value)
        if more and len(more[0]) == width:
            found += more
            logs += targets
    return found[-_ENOUGH:], logs[-_ENOUGH:]


def trials_of(value: Fields) -> tuple[list[Row], list[float]]:
    """Return the rows of a record and their targets; none of one that does not hold."""
    try:
        rows = [tuple(map(float, row)) for row in cast("list[list[float]]", value["rows"])]
        logs = [float(number) for number in cast("list[float]", value["logs"])]
    except (KeyError, TypeError, ValueError):
        return [], []
    same = len(rows) == len(logs) and len({len(row) for row in rows}) == 1
    finite = all(math.isfinite(number) for row in (*rows, logs) for number in row)
    return (rows, logs) if same and finite else ([], [])
