"""A search by a model needs fewer measurements than chance, and learns from other kernels."""

import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from braid.support.errors import BraidError
from braid.support.records.file_store import FileStore
from braid.support.records.record_store import Record
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.tuning.model_search import ModelRule, ModelSearch, Row, numeric_features
from braid.tuning.model_tuning import TRIALS, search_by_model
from braid.tuning.search import Rule, Stop
from test.unit.lowering.test_library import PRODUCT, groups_of

pytest.importorskip("lightgbm")

SPACE: list[Row] = [
    tuple(map(float, point))
    for point in itertools.product((1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16), (1, 2, 3, 4), (0, 1))
]


def seconds(point: Row) -> float | None:
    """Smooth, but for one entry that fails, with its least value in one place."""
    rows, columns, unroll, packed = point
    if rows * columns > 512:
        return None
    spill = max(0.0, rows * columns / 64 - 1)
    return (
        1.0
        + abs(math.log2(rows) - 4)
        + 0.7 * abs(math.log2(columns) - 2)
        + spill
        + (0.2 * abs(unroll - 3) + 0.3 * packed)
    )


def evaluations(seed: int, rule: ModelRule) -> int:
    """Until the best point was found."""
    points = list(SPACE)
    random.Random(seed).shuffle(points)
    search = ModelSearch(points, lambda p: p, numeric_features, rule, seed)
    best = min(t for t in map(seconds, SPACE) if t is not None)
    search.run(seconds, is_done=lambda: best in search.times.values())
    return len(search.times)


def test_spaces_without_guesses_are_begun_in_the_middle() -> None:
    points = list(SPACE)
    random.Random(0).shuffle(points)
    rule = ModelRule(len(SPACE), is_ordered=False)
    first = next(ModelSearch(points, lambda p: p, numeric_features, rule).order())
    assert first[0] == 8 and first[1] == 4 and first[2] in (2, 3)
    assert ModelSearch([], lambda p: p, numeric_features, rule).run(seconds) == {}


def test_fewer_measurements_than_chance() -> None:
    rule = ModelRule(len(SPACE), patience=None)
    counts = [evaluations(seed, rule) for seed in range(5)]
    by_chance = (len(SPACE) + 1) / 2
    assert statistics.fmean(counts) < by_chance / 2


def test_large_spaces_are_sampled() -> None:
    counts = [evaluations(seed, ModelRule(len(SPACE), asked=60, patience=None)) for seed in (1, 2)]
    assert statistics.fmean(counts) < (len(SPACE) + 1) / 2


def test_bounds() -> None:
    search = ModelSearch(SPACE, lambda p: p, numeric_features, ModelRule(20))
    assert len(search.run(seconds)) == 20
    search = ModelSearch(SPACE, lambda p: p, numeric_features, ModelRule(len(SPACE), patience=1))
    tried = search.run(lambda point: 1.0)
    assert len(tried) < len(SPACE), "nothing better is predicted"
    search = ModelSearch(SPACE[:3], lambda p: p, numeric_features, ModelRule(50))
    assert set(search.run(lambda point: None)) == set(SPACE[:3])
    search = ModelSearch([], lambda p: p, numeric_features, ModelRule(50))
    assert search.run(seconds) == {}


def space(level: int) -> list[KernelSchedule]:
    return [
        KernelSchedule.of("gemm", {"rows": int(rows), "unroll": int(unroll)})
        for rows in (1, 2, 4, 8, 16, 32, 64)
        for unroll in (1, 2, 4, 8)
    ][level::3]


def measured(asked: list[KernelSchedule]) -> Callable[[KernelSchedule], float]:
    def measure(point: KernelSchedule) -> float:
        asked.append(point)
        rows, unroll = (math.log2(point.schedule[name]) for name in ("rows", "unroll"))
        return 1.0 + (rows - 5) ** 2 + (unroll - 2) ** 2

    return measure


def test_kernels_learn_from_each_other(tmp_path: Path) -> None:
    (group,) = groups_of(PRODUCT)
    store = FileStore(tmp_path / "records")
    asked: list[KernelSchedule] = []
    rule = Rule(trials=28)
    found = search_by_model(space, measured(asked), 5.0, rule, group, "one", store=store)
    best = KernelSchedule.of("gemm", {"rows": 32, "unroll": 4})
    assert (found.point, found.seconds) == (best, 1.0)
    assert len(asked) == len(set(asked)) and found.steps[-1].size == 28
    again: list[KernelSchedule] = []
    search_by_model(space, measured(again), 5.0, Rule(trials=10), group, "two", store=store)
    assert best in again[:10], "what is known of the other tells where to look"
    assert set(store.read(TRIALS)) == {"one", "two"}
    store.append([Record(TRIALS, "one", {"kind": "gemm rows unroll", "rows": [[1]], "logs": "x"})])
    search_by_model(space, measured([]), 5.0, Rule(trials=3), group, "three", store=store)


def test_budget_and_baseline(tmp_path: Path) -> None:
    (group,) = groups_of(PRODUCT)
    store = FileStore(tmp_path / "records")
    found = search_by_model(space, lambda _: 2.0, 1.0, Rule(trials=4), group, "k", store=store)
    assert (found.point, found.seconds, found.steps[-1].stop) == (None, 1.0, Stop.BUDGET)
    found = search_by_model(space, lambda _: None, 1.0, Rule(trials=4), group, "k", store=store)
    assert found.point is None and found.times == {}


def test_without_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    search = ModelSearch(SPACE, lambda p: p, numeric_features, ModelRule(3))
    with pytest.raises(BraidError, match="LightGBM") as caught:
        search.run(seconds)
    assert "pip install 'braid-compiler[tune]'" in (caught.value.hint or "")
