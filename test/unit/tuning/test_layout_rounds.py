"""Layouts are chosen by what searched schedules take, until nothing changes."""

from pathlib import Path

import pytest

import braid.tuning.tune_model
from braid.dialects.braid.settings import write_settings
from braid.driver.pipeline import passes_for
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.shared_objects import ONEDNN, loaded_library
from braid.targets.backends import kernel_families
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.costs.measurements import Measurements
from braid.targets.costs.schedule_records import TunedKernel, append_tuned, load_tuned
from braid.targets.kernels.group_matches import match_group
from braid.targets.kernels.kernel_family import LIBRARIES
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.kernels.keys import choice_key, record_key
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Device, Target
from braid.tuning.budget import LEAST, Budget, PausedClock
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.search import Rule
from braid.universe import make_context
from test.unit.tuning.test_tune_kernels import WITH_WEIGHT, tune


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def task() -> KernelTask:
    """Return the only kernel, in the layouts that are chosen now."""
    module = parse_mlir(make_context(), WITH_WEIGHT, "m.mlir").module
    passes = passes_for(module)
    place = [pass_.name for pass_ in passes].index("select-schedules")
    run_pipeline(make_context(), module, passes[:place])
    (found,) = kernel_tasks(module)
    return found


def record_gain(gain: float, newer: int = 0, library: float | None = None) -> KernelTask:
    """Of the last layouts that the family offers, which are not those that are chosen.

    The record is of a version of the family that is `newer` than what is installed.
    """
    first = task()
    match = first.default[0]
    other = match.layouts[-1]
    assert other != first.choice
    schedule = KernelSchedule.of("gemm", match.default_schedule())
    machine = target_of(parse_mlir(make_context(), WITH_WEIGHT, "m.mlir").module).host_device
    key = choice_key(first.group, other, machine.machine)
    kept = library is not None
    version = match.family.version + newer
    append_tuned(key, TunedKernel(schedule, version, gain, 1.0, "", library, kept))
    return first


def test_what_gains_most_is_chosen() -> None:
    first = record_gain(1e-3)
    assert task().choice == first.default[0].layouts[-1]


@pytest.mark.parametrize(("gain", "newer"), [(1.0, 0), (1e-3, 1)])
def test_what_gains_nothing_is_not(gain: float, newer: int) -> None:
    first = record_gain(gain, newer)
    assert task().choice == first.choice


def test_the_librarys_gain_counts_where_it_may_be_called() -> None:
    first = record_gain(1.0, library=1e-3)
    assert task().choice == first.choice
    other = first.default[0].layouts[-1]
    seconds: dict[str, float] = {}
    for kernels in ("generated", "best"):
        costs = CostSource(_target(kernels)).on(_host(kernels))
        (cost,) = (cost for layouts, cost in costs.choices(first.group) if layouts == other)
        seconds[kernels] = cost.seconds
    assert seconds["best"] == pytest.approx(seconds["generated"] * 1e-3)


@pytest.mark.skipif(loaded_library(ONEDNN) is None, reason="oneDNN is not installed")
def test_predictions_of_a_librarys_kernels_do_not_count_among_the_best() -> None:
    """They decide where all kernels are the library's; else what was measured does."""
    group = task().group
    for kernels, counts in (("best", False), ("library", True)):
        options = KernelChoice.on(_host(kernels)).options(group)
        assert any(option.family.name in LIBRARIES for option in options) == counts
    best = _host("best")
    families = kernel_families(best)
    library = next(family for family in families if family.name in LIBRARIES)
    found = match_group(library, group)
    assert found is not None
    key = record_key(group, found.layouts[0], library)
    options = KernelChoice(families, Measurements({key: 1e-9}), best.settings).options(group)
    assert [o.layouts for o in options if o.family.name in LIBRARIES] == [found.layouts[0]]


def _target(kernels: str) -> Target:
    module = parse_mlir(make_context(), WITH_WEIGHT, "m.mlir").module
    write_settings(module, {"kernels": kernels})
    return target_of(module)


def _host(kernels: str) -> Device:
    return _target(kernels).host_device


def test_until_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round that searches, and one that finds the same kernels."""
    report, said = tune(monkeypatch, lambda n: 1.0 if n else 2.0, model=WITH_WEIGHT)
    assert report.startswith("1 kernels searched") and "0 known before, 0 left" in report
    assert said[-1] == "layouts chosen again with the times found: nothing changes"
    assert len(load_tuned()) == 1


def test_a_kernel_in_other_layouts_is_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found in the first round makes other layouts the best, as a gain there does."""
    search, found = braid.tuning.tune_model.tune_kernels, list[int]()

    def with_gain(*arguments: object, **named: object) -> object:
        result = search(*arguments, **named)  # pyright: ignore[reportArgumentType]
        if not found:
            found.append(1)
            record_gain(1e-3)
        return result

    monkeypatch.setattr(braid.tuning.tune_model, "tune_kernels", with_gain)
    rule = Rule(trials=6, levels=1)
    report, said = tune(monkeypatch, lambda _: 1.0, model=WITH_WEIGHT, rule=rule, again=True)
    assert "layouts chosen again with the times found: 1 kernels are others" in said
    kernels = [line for line in said if line.startswith("matmul")]
    assert len(set(kernels)) == 2, "the same product, in other layouts"
    assert report.startswith("2 kernels searched")


@pytest.mark.skipif(loaded_library(ONEDNN) is None, reason="oneDNN is not installed")
def test_layouts_of_the_librarys_kernels_are_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is fast in other layouts makes them the best where it may be called."""
    search, found = braid.tuning.tune_model.tune_kernels, list[int]()

    def with_gain(*arguments: object, **named: object) -> object:
        result = search(*arguments, **named)  # pyright: ignore[reportArgumentType]
        if not found:
            found.append(1)
            record_gain(1.0, library=1e-3)
        return result

    monkeypatch.setattr(braid.tuning.tune_model, "tune_kernels", with_gain)
    rule = Rule(trials=6, levels=1)
    times = {0: 4.0, 1: 1.0}  # of the default, and of the library
    _, said = tune(monkeypatch, lambda n: times.get(n, 3.0), model=WITH_WEIGHT, rule=rule)
    again = [line for line in said if line.startswith("layouts chosen again")]
    assert again[0] == "layouts chosen again with the times found: nothing changes"
    which = "layouts chosen again with the times found, a library's kernels among them: "
    assert again[1:] and all(line.startswith(which) for line in again[1:])
    assert again[1] == f"{which}1 kernels are others"


def test_rounds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(braid.tuning.tune_model, "MOST_ROUNDS", 1)
    _, said = tune(monkeypatch, lambda n: 1.0 if n else 2.0, model=WITH_WEIGHT)
    assert not any("again" in line for line in said)


def test_the_budget_goes_where_time_is() -> None:
    """Each kernel gets its part of what is left; what one did not need is for those behind it."""
    now = 0.0
    budget = Budget([6.0, 3.0, 1.0], 100.0, lambda: now)
    first = budget.part(0)
    now = 60.0
    assert not first() and not budget.is_spent()
    now = 60.1
    assert first()
    now = 20.0  # the first needed a third
    second = budget.part(1)
    now = 80.0
    assert not second()
    now = 80.1
    assert second()
    third = budget.part(2)
    now = 99.0
    assert not third()
    now = 100.1
    assert third() and budget.is_spent()
    small = Budget([1e6, 1.0], 100.0, lambda: now).part(1)
    now += LEAST
    assert not small()


def test_asking_takes_none_of_the_budget() -> None:
    """Whoever thinks about an answer does not lose the time to search."""
    now = 0.0

    def ask(answer: str, *, seconds: float) -> str:
        nonlocal now
        now += seconds
        if answer == "no":
            raise ValueError(answer)
        return answer

    clock = PausedClock(lambda: now)
    asked, budget = clock.while_asking(ask), Budget([1.0], 10.0, clock)
    assert asked("yes", seconds=60.0) == "yes"
    with pytest.raises(ValueError, match="no"):
        asked("no", seconds=60.0)
    now += 10.0
    assert not budget.is_spent() and clock() == 10.0
    now += 0.1
    assert budget.is_spent()


def test_a_clock_that_ends_spends_all_budgets() -> None:
    clock = PausedClock()
    budget = Budget([1.0], 1e6, clock)
    assert not budget.is_spent()
    clock.end()
    assert budget.is_spent() and budget.part(0)()
