"""Schedules that are faster and right are recorded, and models are compiled with them."""

from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding as llvm

import braid
import braid.tuning.kernel_tasks
import braid.tuning.measuring_workers
import braid.tuning.tune_kernels
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.dialects.braid.attribute_names import SCHEDULE
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.driver.pipeline import passes_for
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.support.records.record_store import Record, default_store
from braid.support.shared_objects import ONEDNN, loaded_library
from braid.targets.costs.schedule_records import (
    SCHEDULE_KIND,
    TunedKernel,
    append_tuned,
    load_tuned,
)
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.kernel_schedule import KernelSchedule, schedule_of
from braid.tuning.budget import Budget
from braid.tuning.kernel_runs import RunRequest, run_kernel
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.layout_candidates import layout_candidates
from braid.tuning.search import LevelResult, Rule
from braid.tuning.timing import TimingRequest
from braid.tuning.timing_worker import timing_worker
from braid.tuning.tune_kernels import Tuning
from braid.tuning.tune_model import tune_model
from braid.universe import make_context
from test.unit.tuning.test_measure_layouts import FAMILIES, model, request_of

MODEL = """
func.func @main(%x: tensor<24x40xf32> {braid.name = "x"}, %w: tensor<40x48xf32> {braid.name = "w"})
    -> (tensor<24x48xf32> {braid.name = "y"}) {
  %y = braid.matmul %x, %w : (tensor<24x40xf32>, tensor<40x48xf32>) -> tensor<24x48xf32>
  func.return %y : tensor<24x48xf32>
}
"""


WITH_WEIGHT = """
func.func @main(%x: tensor<24x40xf32> {braid.name = "x"})
    -> (tensor<24x48xf32> {braid.name = "y"}) {
  %w = braid.parameter {key = "w"} : tensor<40x48xf32>
  %y = braid.matmul %x, %w : (tensor<24x40xf32>, tensor<40x48xf32>) -> tensor<24x48xf32>
  func.return %y : tensor<24x48xf32>
}
"""
"""A weight is stored as a library would have it."""


class FakeWorker:
    """Kernels run, and take what the test says: the n-th to be timed first takes `times[n]`."""

    def __init__(self, times: Callable[[int], float | None], wrong: set[int]) -> None:
        self.times, self.wrong = times, wrong
        self.seen: dict[bytes, int] = {}

    def seconds(self, request: TimingRequest) -> float | None:
        return self.times(self.seen.setdefault(request.object_code, len(self.seen)))

    def results(self, request: RunRequest) -> tuple[Array, ...]:
        results = run_kernel(request)
        if self.seen[request.object_code] in self.wrong:
            results[0].flat[-1] += 1
        return results


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def time_by(
    monkeypatch: pytest.MonkeyPatch,
    times: Callable[[int], float | None],
    wrong: frozenset[int] = frozenset(),
) -> None:
    """Kernels take what `times` says from now on."""

    @contextmanager
    def fake() -> Generator[FakeWorker]:
        yield FakeWorker(times, set(wrong))

    monkeypatch.setattr(braid.tuning.measuring_workers, "timing_worker", fake)


def tune(
    monkeypatch: pytest.MonkeyPatch,
    times: Callable[[int], float | None],
    wrong: frozenset[int] = frozenset(),
    rule: Rule | None = None,
    model: str = MODEL,
    **options: object,
) -> tuple[str, list[str]]:
    """Return the report, and the messages. Models are not run as a whole: those times are real."""
    options.setdefault("whole_model", False)
    time_by(monkeypatch, times, wrong)
    said: list[str] = []
    module = parse_mlir(make_context(), model, "m.mlir").module
    tuning = Tuning(rule=rule or Rule(trials=6), jobs=1, say=said.append, **options)  # pyright: ignore[reportArgumentType]
    report = tune_model(module, tuning)
    return str(report), said


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(braid.tuning.kernel_tasks, "library_kernels", lambda *_: [])


@pytest.mark.skipif(loaded_library(ONEDNN) is None, reason="oneDNN is not installed")
def test_the_library_is_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first to be timed is the default, the second the library's.

    Where the CPU's vectors have the weight in other layouts than the library, the kernel of the
    library's layouts is searched as well, in the same way.
    """
    report, said = tune(
        monkeypatch, lambda number: {0: 4.0, 1: 1.0}.get(number, 3.0), model=WITH_WEIGHT
    )
    assert "library 1e+06 µs, default 4e+06 µs" in said[1]
    assert "ratio 0.333" in said[2] and "stops: the ratio is below the threshold" in said[2]
    records = load_tuned().values()
    assert "the library stays" in said[3] and len(records) in (1, 2)
    assert f"a library's are faster than {len(records)}" in report
    for record in records:
        assert record.keeps_library and record.library == 1.0
        assert record.chosen is not None and (record.seconds, record.baseline) == (3.0, 4.0)
    module = parse_mlir(make_context(), WITH_WEIGHT, "m.mlir").module
    x, w = np.ones((24, 40), np.float32), np.ones((40, 48), np.float32)
    for kernels, calls in (("generated", False), ("best", True)):
        compiled = braid.compile(module, jobs=1, kernels=kernels, parameters={"w": w})
        np.testing.assert_allclose(compiled(x), x @ w, rtol=1e-5)
        path = tmp_path / f"{kernels}.braid"
        compiled.save(path)
        assert (ONEDNN in read_artifact(path).manifest.libraries) == calls


@pytest.mark.skipif(loaded_library(ONEDNN) is None, reason="oneDNN is not installed")
def test_a_library_that_is_slower_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels, and those of others that are here, are timed before any schedule."""
    module = parse_mlir(make_context(), WITH_WEIGHT, "m.mlir").module
    run_pipeline(make_context(), module, "select-fusion,apply-fusion,select-layouts,apply-layouts")
    (task,) = kernel_tasks(module)
    slow = dict.fromkeys(range(2, len(task.library) + 1), 3.5)
    tune(monkeypatch, lambda number: {0: 4.0, 1: 3.0, **slow}.get(number, 2.0), model=WITH_WEIGHT)
    record = only_record()
    assert not record.keeps_library and (record.library, record.seconds) == (3.0, 2.0)


@pytest.mark.skipif(loaded_library(ONEDNN) is None, reason="oneDNN is not installed")
def test_no_layout_is_chosen_for_a_library_that_is_faster_by_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The layouts that it likes best are others, of which nothing would be recorded."""
    times = {0: 3.01, 1: 3.0}
    _, said = tune(monkeypatch, lambda number: times.get(number, 3.5), model=WITH_WEIGHT)
    assert "library 3e+06 µs" in said[1] and not only_record().keeps_library
    module = parse_mlir(make_context(), WITH_WEIGHT, "m.mlir").module
    parameters = {"w": np.ones((40, 48), np.float32)}
    compiled = braid.compile(module, jobs=1, kernels="best", parameters=parameters)
    assert str(compiled.kernels) == "1 of 1 kernels have a record of a search"


@pytest.mark.skipif(loaded_library(ONEDNN) is None, reason="oneDNN is not installed")
def test_levels_end_early_behind_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, equal times are no reason to measure no more."""

    def times(number: int) -> float:
        return 3.0 if number == 1 else 3.5

    _, said = tune(monkeypatch, times, model=WITH_WEIGHT, rule=Rule())
    assert any("promise too little" in line for line in said)
    monkeypatch.setattr(braid.tuning.kernel_tasks, "library_kernels", lambda *_: [])
    _, said = tune(monkeypatch, lambda _: 3.5, model=WITH_WEIGHT, rule=Rule(), again=True)
    assert not any("promise too little" in line for line in said)
    assert sum("schedules tried" in line for line in said) > 1


@pytest.mark.usefixtures("no_library")
@pytest.mark.parametrize(("trials", "searched"), [(4, 1), (1, 0)])
def test_what_had_no_time_is_searched_again(
    trials: int, searched: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless as many schedules as are wanted were measured in the little time that there was."""
    with monkeypatch.context() as hurried:
        asked = count()
        hurried.setattr(Budget, "part", lambda *_: lambda: next(asked) > 0)
        _, said = tune(monkeypatch, lambda _: 1.0, rule=Rule(trials=trials))
    assert any("1 of 3 schedules tried" in line and "budget" in line for line in said)
    report, _ = tune(monkeypatch, lambda _: 1.0, rule=Rule(trials=trials))
    assert report.startswith(f"{searched} kernels searched")


@pytest.mark.usefixtures("no_library")
def test_a_machine_that_slows_down_at_times_hides_no_gain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both kernels of a turn meet it."""
    asked = count()

    def times(number: int) -> float:
        return (1.0 if number == 0 else 0.9) * (1 + next(asked) // 8 % 2)

    tune(monkeypatch, times)
    record = only_record()
    assert record.chosen is not None
    assert record.seconds == pytest.approx(0.9 * record.baseline)


def only_record() -> TunedKernel:
    (record,) = load_tuned().values()
    return record


@pytest.mark.usefixtures("no_library")
def test_the_fastest_is_recorded_and_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    report, said = tune(monkeypatch, lambda number: 2.0 if number == 0 else 1.0 + 0.1 * number)
    assert report.startswith("1 kernels searched, 1 of them are faster, together 1.818 times")
    record = only_record()
    assert record.chosen is not None and record.chosen.family == "gemm"
    assert (record.seconds, record.baseline) == (1.1, 2.0)
    assert said[0].startswith("matmul -> 24x48") and "level 0" in said[1]
    context = make_context()
    module = parse_mlir(context, MODEL, "m.mlir").module
    names = [pass_.name for pass_ in passes_for(module)]
    decided = passes_for(module)[: names.index("outline-kernels")]
    with collect_remarks() as remarks:
        run_pipeline(context, module, decided)
    (group,) = (op for op in module.walk() if isinstance(op, FusedOp))
    assert schedule_of(group) == record.chosen
    assert "1 of 1 groups have a record of a search" in [remark.message for remark in remarks]
    generator = np.random.default_rng(0)
    x = generator.standard_normal((24, 40), np.float32)
    w = generator.standard_normal((40, 48), np.float32)
    compiled = braid.compile(parse_mlir(context, MODEL, "m.mlir").module, jobs=1)
    np.testing.assert_allclose(compiled(x, w), x @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("no_library")
def test_the_schedule_changes_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    before = emit_model(
        parse_mlir(make_context(), MODEL, "m.mlir").module, "linalg", CompileOptions(jobs=1)
    )
    tune(monkeypatch, lambda number: 2.0 if number == 0 else 1.0 + 0.1 * number)
    after = emit_model(
        parse_mlir(make_context(), MODEL, "m.mlir").module, "linalg", CompileOptions(jobs=1)
    )
    assert before != after


@pytest.mark.usefixtures("no_library")
def test_wrong_kernels_and_crashes_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {0: 2.0, 1: None, 2: 0.5, 3: 0.7, 4: 0.9}
    _, said = tune(monkeypatch, lambda number: times.get(number, 3.0), wrong=frozenset({2}))
    record = only_record()
    assert record.chosen is not None and record.seconds == 0.7
    assert sorted(record.refused.values()) == ["it crashed, or took too long", "wrong results"]
    (wrong,) = (point for point, why in record.refused.items() if why == "wrong results")
    assert f"  wrong results: {wrong}" in said


@pytest.mark.usefixtures("no_library")
def test_steps_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = tune(monkeypatch, lambda number: 2.0 if number == 0 else 1.0 + 0.1 * number)
    steps = [LevelResult.of(fields) for fields in only_record().steps]
    assert steps and [f"  {step}" for step in steps] == [line for line in said if "level" in line]


@pytest.mark.usefixtures("no_library")
@pytest.mark.parametrize(
    ("quotients", "is_claimed"),
    [((0.8, 0.97, 1.2), False), ((0.9, 0.95, 1.0), True), ((0.99, 1.0, 1.01), False)],
    ids=["noise", "a gain that seven turns do not show", "none"],
)
def test_gains_within_the_noise_are_not_claimed(
    quotients: tuple[float, ...], is_claimed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = defaultdict[int, int](int)

    def times(number: int) -> float:
        turns[number] += 1
        return quotients[turns[number] % 3] if number else 1.0

    _, said = tune(monkeypatch, times, rule=Rule(trials=2))
    assert (only_record().chosen is not None) == is_claimed
    assert is_claimed or "the default schedule stays" in said[-2]


@pytest.mark.usefixtures("no_library")
def test_what_was_searched_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, lambda _: 1.0)
    report, said = tune(monkeypatch, lambda _: 1.0)
    assert report == "0 kernels searched, 0 of them are faster; 1 known before, 0 left"
    assert said == []
    assert tune(monkeypatch, lambda _: 1.0, again=True)[0].startswith("1 kernels searched")


@pytest.mark.usefixtures("no_library")
def test_all_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = tune(monkeypatch, lambda number: 2.0 if number == 0 else 1.0, rule=Rule())
    assert ["level 0" in said[1], "level 1" in said[2], "level 2" in said[3]] == [True] * 3


@pytest.mark.parametrize(
    "changed",
    [
        {"schedule": {"rows": 999}},
        {"family": "none"},
        {"family": 3},
        {"schedule": {"rows": "4"}},
        {"schedule": []},
        {"seconds": -1.0},
        {"version": None},
    ],
)
def test_records_that_do_not_fit_are_not_used(
    changed: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(monkeypatch, lambda number: 2.0 if number == 0 else 1.0)
    ((key, value),) = default_store().read(SCHEDULE_KIND).items()
    default_store().append([Record(SCHEDULE_KIND, key, {**value, **changed})])
    x, w = np.ones((24, 40), np.float32), np.ones((40, 48), np.float32)
    compiled = braid.compile(parse_mlir(make_context(), MODEL, "m.mlir").module, jobs=1)
    np.testing.assert_allclose(compiled(x, w), x @ w, rtol=1e-5)


def test_a_record_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, lambda number: 2.0 if number == 0 else 1.0)
    ((key, record),) = load_tuned().items()
    append_tuned(key, TunedKernel(record.chosen, record.version + 1, 1.0, 2.0))
    context = make_context()
    module = parse_mlir(context, MODEL, "m.mlir").module
    names = [pass_.name for pass_ in passes_for(module)]
    run_pipeline(context, module, passes_for(module)[: names.index("outline-kernels")])
    assert not any(SCHEDULE in op.attributes for op in module.walk())


def test_a_schedule_by_hand_that_no_family_has() -> None:
    text = MODEL.replace(
        "braid.matmul %x, %w :",
        'braid.matmul %x, %w {braid.schedule = {family = "gemm", schedule = {rows = 9 : i64}}} :',
    )
    module = parse_mlir(make_context(), text, "m.mlir").module
    run_pipeline(make_context(), module, "select-fusion,apply-fusion")
    for op in module.walk():
        if isinstance(op, FusedOp):
            op.attributes[SCHEDULE] = next(
                inner.attributes[SCHEDULE] for inner in op.walk() if SCHEDULE in inner.attributes
            )
    with pytest.raises(BraidError, match="no kernel family has the schedule 'gemm rows=9'"):
        braid.compile(module, passes="outline-kernels", jobs=1)


def test_a_kernel_that_hangs_costs_one_measurement() -> None:

    [candidates, _] = layout_candidates(model((1, 16, 2, 3)), FAMILIES)
    with timing_worker(most_seconds=3.0) as worker:
        assert worker.seconds(request_of(candidates[0], budget_seconds=1e9)) is None
        assert worker.seconds(request_of(candidates[0])) is not None


def test_schedules_are_told_apart() -> None:
    one = KernelSchedule.of("gemm", {"rows": 4, "vectors": 2})
    assert one == KernelSchedule.of("gemm", {"vectors": 2, "rows": 4})
    assert one != KernelSchedule.of("gemm", {"rows": 4}) and str(one) == "gemm rows=4 vectors=2"


HAS_HALVES = llvm.get_host_cpu_features().get("avx512bf16", False)
NARROW = """
func.func @main(%x: tensor<24x40x{left}> {{braid.name = "x"}})
    -> (tensor<24x48x{result}> {{braid.name = "y"}}) {{
  %w = braid.parameter {{key = "w"}} : tensor<40x48x{element}>
  %p = braid.matmul %x, %w {{accumulator = {result}}}
    : (tensor<24x40x{left}>, tensor<40x48x{element}>) -> tensor<24x48x{result}>
  %c = braid.constant {{value = dense<{zero}> : tensor<1x1x{result}>}} : tensor<1x1x{result}>
  %y = braid.{op} %p, %c
    : (tensor<24x48x{result}>, tensor<1x1x{result}>) -> tensor<24x48x{result}>
  func.return %y : tensor<24x48x{result}>
}}
"""


@pytest.mark.usefixtures("no_library")
@pytest.mark.parametrize(
    ("left", "element", "result", "zero"),
    [
        pytest.param(
            "bf16", "bf16", "f32", "0.0",
            marks=pytest.mark.skipif(not HAS_HALVES, reason="this CPU multiplies no pairs of bf16"),
        ),
        ("ui8", "i8", "i32", "0"),
    ],
)  # fmt: skip
def test_wrong_kernels_of_narrow_types_are_recorded(
    left: str, element: str, result: str, zero: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fastest candidate computes another function, which agrees where all operands are 0."""

    def text(op: str) -> str:
        return NARROW.format(left=left, element=element, result=result, zero=zero, op=op)

    module = parse_mlir(make_context(), text("maximum"), "other.mlir").module
    run_pipeline(make_context(), module, "select-fusion,apply-fusion,select-layouts,apply-layouts")
    (other,) = kernel_tasks(module)
    emit = KernelTask.emit
    points: list[KernelSchedule] = []

    def broken(task: KernelTask, point: KernelSchedule, symbol: str) -> Kernel:
        points.append(point)
        return emit(other if len(points) == 2 else task, point, symbol)

    monkeypatch.setattr(KernelTask, "emit", broken)
    tune(monkeypatch, lambda number: {0: 2.0, 1: 0.5}.get(number, 3.0), model=text("add"))
    record = only_record()
    assert record.refused == {str(points[1]): "wrong results"} and record.chosen is None
