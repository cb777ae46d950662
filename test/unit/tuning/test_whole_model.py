"""What was found for kernels stays where it does not make the model as a whole slower."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from xdsl.dialects.builtin import ModuleOp

import braid.tuning.whole_model
from braid.driver.lower_source import Lowering
from braid.driver.lowered_model import LoweredModel, package_of
from braid.driver.options import CompileOptions
from braid.driver.pipeline import passes_for
from braid.driver.read_source import read_source
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.records.record_store import Record, default_store
from braid.support.settings import Kernels
from braid.support.worker_process import WorkerEndedError, WorkerProcess
from braid.targets.costs.cost_records import append_records, load_records
from braid.targets.costs.schedule_records import (
    SCHEDULE_KIND,
    TunedKernel,
    append_tuned,
    load_tuned,
)
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.tools.commands.records import records
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.measured_task import LIBRARY_COST, SLOWER_IN_MODEL
from braid.tuning.model_runs import Program, Programs, Turns, TurnsRequest
from braid.tuning.model_verdict import MODEL_KIND, Changed, Verdict, judge
from braid.tuning.tune_kernels import Tuning
from braid.tuning.tune_model import tune_model
from braid.tuning.turns import MOST_TURNS, TURNS
from braid.tuning.whole_model import Snapshot, WholeModel
from braid.universe import make_context
from test.unit.tuning.test_tune_kernels import tune

A, B, C = "a", "b", "c"
ALL = frozenset({A, B, C})
NOISE = (1.0, 1.02, 0.98, 1.01, 0.99, 1.0, 1.005)


class Model:
    """Kernels by key, which take a second before, and `found[key]` when they are as found.

    `rest` is what a model takes beside them with what was found: reorders, other caches.
    """

    def __init__(
        self,
        found: Mapping[str, float],
        rest: Callable[[Changed], float] = lambda _: 0.0,
        noise: Sequence[float] = (1.0,),
    ) -> None:
        self.found, self.rest, self.noise = found, rest, cycle(noise)
        self.asked: list[tuple[Changed, ...]] = []

    def measure(self, programs: Sequence[Changed], turns: int) -> list[Turns]:
        self.asked.append(tuple(programs))
        return [self._turns(kept, turns) for kept in programs]

    def _turns(self, kept: Changed, count: int) -> Turns:
        result = Turns()
        for noise in islice(self.noise, count):
            each = {key: (s if key in kept else 1.0) * noise for key, s in self.found.items()}
            total = sum(each.values()) + self.rest(kept) * noise
            result.add(Turns([total], {f"op {key}": [s] for key, s in each.items()}))
        return result

    def judged(self) -> Verdict:
        keys = frozenset(self.found)
        return judge(keys, self.measure, lambda: {key: [f"op {key}"] for key in keys})


def test_what_is_faster_as_a_whole_stays() -> None:
    model = Model({A: 0.8, B: 0.9, C: 0.9})
    verdict = model.judged()
    assert verdict.kept == ALL and not verdict.slower and verdict.is_claimed
    assert (verdict.before, verdict.after) == (3.0, pytest.approx(2.6))
    assert verdict.gain == pytest.approx(3 / 2.6)
    assert len(model.asked) == 1, "one comparison, of as few turns as tell"
    assert "3000 ms before, 2600 ms now, 1.154 times as fast" in str(verdict)


def test_what_is_slower_as_a_whole_is_taken_back() -> None:
    """No kernel of it takes longer; layouts cost others more, say."""
    verdict = Model({A: 0.9, B: 1.0}, rest=lambda kept: 0.3 if kept else 0.0).judged()
    assert not verdict.kept and verdict.changed == {A, B}
    assert verdict.after == verdict.before and verdict.gain == 1.0 and not verdict.is_claimed
    assert "2 of 2 kernels are taken back" in str(verdict)


def test_kernels_that_are_slower_in_the_model_are_taken_back() -> None:
    model = Model({A: 0.8, B: 1.5, C: 0.9})
    verdict = model.judged()
    assert verdict.kept == {A, C} and verdict.is_claimed
    (slower,) = verdict.slower.items()
    assert slower[0] == B and (slower[1].before, slower[1].after) == (1.0, 1.5)
    assert verdict.found == pytest.approx(3 / 3.2) and verdict.gain == pytest.approx(3 / 2.7)
    assert model.asked[-1] == (frozenset(), ALL, frozenset({A, C}))
    assert "1 of 3 kernels are taken back" in str(verdict)


def test_some_are_taken_back_only_where_that_is_the_fastest() -> None:
    """A kernel that takes longer may be what lets another one be faster."""
    model = Model({A: 0.5, B: 1.1}, rest=lambda kept: 0.0 if B in kept or not kept else 1.0)
    assert model.judged().kept == {A, B}


def test_all_are_taken_back_where_each_is_slower() -> None:
    assert not Model({A: 1.2, B: 1.1}).judged().kept


def test_noise_claims_nothing() -> None:
    """What is not slower stays, and nothing is said to be faster."""
    model = Model({A: 0.999, B: 1.0}, noise=NOISE)
    verdict = model.judged()
    assert verdict.turns == MOST_TURNS and not verdict.is_claimed
    assert ("no gain beyond the noise" in str(verdict)) == bool(verdict.kept)


def test_noise_that_hides_a_loss_is_no_gain() -> None:
    verdict = Model({A: 1.004}, noise=NOISE).judged()
    assert not verdict.is_claimed and verdict.gain <= 1 + verdict.noise


def test_kernels_that_the_model_before_had_not_are_judged_as_a_whole() -> None:
    """Other layouts may fuse otherwise; of such kernels there is no time to compare with."""
    model = Model({A: 1.5, B: 0.2})
    verdict = judge(ALL, model.measure, lambda: {A: ["op a", "another op"], B: ["op b"]})
    assert verdict.kept == ALL and not verdict.slower


def test_records_say_the_same() -> None:
    verdict = Model({A: 0.8, B: 1.5, C: 0.9}).judged()
    fields = json.loads(json.dumps(verdict.fields))
    assert Verdict.of(fields) == verdict
    for name in fields:
        assert Verdict.of({k: v for k, v in fields.items() if k != name}) is None
        assert Verdict.of(fields | {name: None}) is None
    default_store().append([Record(MODEL_KIND, n, v) for n, v in (("a", fields), ("b", {}))])
    said = CliRunner().invoke(records, ["best"])
    assert said.exit_code == 0 and said.output.count("the model as a whole: 3000 ms before") == 1


def test_turns_end_after_their_time() -> None:
    model, clock = Model({A: 0.999}, noise=NOISE), iter(range(0, 10000, 20))
    verdict = judge(frozenset({A}), model.measure, lambda: {}, lambda: next(clock))
    assert TURNS <= verdict.turns < MOST_TURNS


TWO = """
func.func @main(%x: tensor<24x40xf32> {braid.name = "x"})
    -> (tensor<24x32xf32> {braid.name = "y"}) {
  %w = braid.parameter {key = "w"} : tensor<40x48xf32>
  %v = braid.parameter {key = "v"} : tensor<48x32xf32>
  %h = braid.matmul %x, %w {braid.name = "first"} : (tensor<24x40xf32>, tensor<40x48xf32>) -> tensor<24x48xf32>
  %y = braid.matmul %h, %v {braid.name = "second"} : (tensor<24x48xf32>, tensor<48x32xf32>) -> tensor<24x32xf32>
  func.return %y : tensor<24x32xf32>
}
"""  # noqa: E501


def product(rows: int, depth: int, columns: int) -> str:
    x, w, y = (
        f"tensor<{a}x{b}xf32>" for a, b in ((rows, depth), (depth, columns), (rows, columns))
    )
    return f"""
func.func @main(%x: {x}) -> {y} {{
  %w = braid.parameter {{key = "w"}} : {w}
  %y = braid.matmul %x, %w {{braid.name = "product"}} : ({x}, {w}) -> {y}
  func.return %y : {y}
}}
"""


LOOP = """
func.func @main(%x: tensor<256x256xf32>, %n: tensor<i64>) -> tensor<256x256xf32> {
  %w = braid.parameter {key = "w"} : tensor<256x256xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %scalar = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %scalar : i64 to index
  %y = scf.for %i = %zero to %end step %one iter_args(%s = %x) -> (tensor<256x256xf32>) {
    %p = braid.matmul %s, %w {braid.name = "product"} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %t = braid.tanh %p : (tensor<256x256xf32>) -> tensor<256x256xf32>
    scf.yield %t : tensor<256x256xf32>
  }
  func.return %y : tensor<256x256xf32>
}
"""  # noqa: E501
ENDLESS = """
func.func @main(%a: tensor<256x384xf32>, %b: tensor<384x512xf32>, %c: tensor<i1>)
    -> (tensor<256x512xf32>, tensor<i1>) {
  %p = braid.matmul %a, %b
      : (tensor<256x384xf32>, tensor<384x512xf32>) -> tensor<256x512xf32>
  %going = scf.while (%go = %c) : (tensor<i1>) -> tensor<i1> {
    %more = tensor.extract %go[] : tensor<i1>
    scf.condition(%more) %go : tensor<i1>
  } do {
  ^bb0(%go: tensor<i1>):
    scf.yield %go : tensor<i1>
  }
  func.return %p, %going : tensor<256x512xf32>, tensor<i1>
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def decided(path: Path, kernels: Kernels = Kernels.GENERATED) -> ModuleOp:
    module = read_source(make_context(), path, settings={"kernels": kernels}).module
    passes = passes_for(module)
    place = [pass_.name for pass_ in passes].index("select-schedules")
    run_pipeline(make_context(), module, passes[:place])
    return module


def whole(path: Path, own: Iterable[str], before: Snapshot) -> WholeModel:
    context = make_context()
    read = partial(read_source, context, path)
    keys = frozenset(own)
    return WholeModel(context, read, partial(decided, path), keys, keys, before, jobs=1)


def one_product(directory: Path) -> tuple[Path, KernelTask]:
    """Return a model of one kernel, and the kernel."""
    path = directory / "m.mlir"
    path.write_text(product(256, 384, 512))
    (task,) = kernel_tasks(decided(path))
    return path, task


def confirm(task: KernelTask) -> None:
    """Says that some model was compared, and kept the kernel as it is."""
    kept = Verdict(frozenset({task.key}), frozenset({task.key}), 2.0, 1.0, 2.0, 2.0, 0.1, 7)
    stayed = {task.key: default_store().read(SCHEDULE_KIND)[task.key]}
    value = {"what": "another", "kernels": "generated", "stayed": stayed, **kept.fields}
    default_store().append([Record(MODEL_KIND, "another", value)])


def area(point: KernelSchedule) -> int:
    """Of the tile, whose products are summed in registers."""
    return point.schedule["rows"] * point.schedule["vectors"]


def record(task: KernelTask, point: KernelSchedule, **named: Any) -> None:
    """Record that the schedule takes half of the default's time."""
    version = task.default[0].family.version
    append_tuned(task.key, TunedKernel(point, version, 0.5, 1.0, str(task), **named))


def schedules(task: KernelTask) -> list[KernelSchedule]:
    """Of the default's family, the smallest tiles first."""
    family = task.default[1].family
    return sorted((p for n in range(3) for p in task.space(n) if p.family == family), key=area)


def last_model() -> Mapping[str, Any]:
    values = default_store().read(MODEL_KIND)
    (value,) = (value for key, value in values.items() if key != "another")
    return value


def test_a_schedule_that_is_slow_in_the_model_is_taken_back(tmp_path: Path) -> None:
    """By real runs: a tile of one vector, which was recorded as faster, is several times slower."""
    path = tmp_path / "m.mlir"
    path.write_text(product(256, 384, 512))
    before = Snapshot.now()
    (task,) = kernel_tasks(decided(path))
    slow = schedules(task)[0]
    assert area(slow) * 4 <= area(task.default[1])
    record(task, slow)
    said: list[str] = []
    verdicts = whole(path, [task.key], before).confirm(said.append)
    assert len(verdicts) == 1, said
    verdict = verdicts[0]
    assert not verdict.kept and verdict.found < 0.9
    known = load_tuned()[task.key]
    assert known.chosen is None and known.seconds == known.baseline == 1.0
    assert known.refused == {str(slow): SLOWER_IN_MODEL}
    assert "1 of 1 kernels are taken back" in said[0] and said[1] == f"  {task}"
    assert last_model()["taken_back"] == [task.key] and last_model()["what"] == "m"
    assert whole(path, [task.key], before).confirm(said.append) == [], "nothing is another now"


def test_a_schedule_that_is_slow_in_a_loop_is_taken_back(tmp_path: Path) -> None:
    """By real runs: an input says how often the loop turns, which it does then."""
    path = tmp_path / "m.mlir"
    path.write_text(LOOP)
    before = Snapshot.now()
    (task,) = (task for task in kernel_tasks(decided(path)) if "matmul" in str(task))
    slow = schedules(task)[0]
    record(task, slow)
    (verdict,) = whole(path, [task.key], before).confirm(lambda _: None)
    assert not verdict.kept and verdict.found < 0.9
    assert load_tuned()[task.key].refused == {str(slow): SLOWER_IN_MODEL}


def test_a_loop_that_a_made_up_condition_never_ends_does_not_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the model is compared all the same."""
    path = tmp_path / "m.mlir"
    path.write_text(ENDLESS)
    monkeypatch.setattr(braid.tuning.whole_model, "_TRIAL_SECONDS", 2.0)
    before = Snapshot.now()
    (task,) = (task for task in kernel_tasks(decided(path)) if "matmul" in str(task))
    slow = schedules(task)[0]
    record(task, slow)
    (verdict,) = whole(path, [task.key], before).confirm(lambda _: None)
    assert not verdict.kept and load_tuned()[task.key].refused == {str(slow): SLOWER_IN_MODEL}


def test_a_schedule_that_is_fast_in_the_model_stays(tmp_path: Path) -> None:
    """By real runs, after a record of a slow one: what was there before is the slow one."""
    path, task = one_product(tmp_path)
    record(task, schedules(task)[0])
    confirm(task)
    before = Snapshot.now()
    record(task, task.default[1])
    (verdict,) = whole(path, [task.key], before).confirm(lambda _: None)
    assert verdict.kept == {task.key} and verdict.is_claimed and verdict.gain > 1.1
    assert load_tuned()[task.key].chosen == task.default[1]
    assert last_model()["kept"] == [task.key] and last_model()["gain"] == verdict.gain


def test_what_was_there_before_comes_back(tmp_path: Path) -> None:
    """A search again that makes the model slower leaves the schedule that it had."""
    path, task = one_product(tmp_path)
    record(task, task.default[1])
    confirm(task)
    before = Snapshot.now()
    record(task, schedules(task)[0])
    (verdict,) = whole(path, [task.key], before).confirm(lambda _: None)
    assert not verdict.kept and load_tuned()[task.key].chosen == task.default[1]


def test_what_an_interrupted_search_left_is_compared_later(tmp_path: Path) -> None:
    """Nothing is searched any more, and what was found is in no model that was compared."""
    path, task = one_product(tmp_path)
    record(task, schedules(task)[0])
    report = tune_model(path, Tuning(jobs=1))
    assert report.searched == 0 and report.known == 1
    (verdict,) = report.whole
    assert not verdict.kept and load_tuned()[task.key].chosen is None
    assert not tune_model(path, Tuning(jobs=1)).whole


def test_what_was_found_after_a_comparison_is_compared_later(tmp_path: Path) -> None:
    """A search again was interrupted, say: what stayed in a model is what it has to beat."""
    path, task = one_product(tmp_path)
    record(task, task.default[1])
    confirm(task)
    assert not tune_model(path, Tuning(jobs=1)).whole, "it is as it was compared"
    record(task, schedules(task)[0])
    (verdict,) = tune_model(path, Tuning(jobs=1)).whole
    assert not verdict.kept and load_tuned()[task.key].chosen == task.default[1]
    assert not tune_model(path, Tuning(jobs=1)).whole


def test_what_stayed_within_the_noise_is_compared_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what was there before that: the machine may do less by then."""
    judged = braid.tuning.whole_model.judge

    def all_stay(changed: Changed, *_: Any) -> Verdict:
        return Verdict(changed, changed, 1.0, 0.99, 1.01, 1.01, 0.03, 35)

    path, task = one_product(tmp_path)
    record(task, schedules(task)[0])
    monkeypatch.setattr(braid.tuning.whole_model, "judge", all_stay)
    (verdict,) = tune_model(path, Tuning(jobs=1)).whole
    assert verdict.kept == {task.key} and not verdict.is_claimed
    assert load_tuned()[task.key].chosen == schedules(task)[0], "it stays until then"
    monkeypatch.setattr(braid.tuning.whole_model, "judge", judged)
    (verdict,) = tune_model(path, Tuning(jobs=1)).whole
    assert not verdict.kept and load_tuned()[task.key].chosen is None
    assert not tune_model(path, Tuning(jobs=1)).whole


def test_what_is_compared_later_leaves_the_rest_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of a model is a later one then, of one of its kernels alone."""

    def all_kept(changed: Changed, *_: Any) -> Verdict:
        return Verdict(changed, changed, 2.0, 1.0, 2.0, 2.0, 0.1, 7)

    monkeypatch.setattr(braid.tuning.whole_model, "judge", all_kept)
    path = tmp_path / "m.mlir"
    path.write_text(TWO)
    tasks = kernel_tasks(decided(path))
    for number, changed in enumerate((tasks, tasks[:1], [])):
        for task in changed:
            record(task, schedules(task)[number])
        verdicts = tune_model(path, Tuning(jobs=1)).whole
        expected = [{task.key for task in changed}] if changed else []
        assert [verdict.changed for verdict in verdicts] == expected


@pytest.mark.parametrize(
    "stayed",
    [None, [], {"a": None}, {"a": {"seconds": "1"}}, {"a": {"family": [], "schedule": 1}}],
)
def test_records_of_models_that_do_not_hold_confirm_nothing(stayed: object) -> None:
    value = {"kernels": "generated", "stayed": stayed}
    default_store().append([Record(MODEL_KIND, "a", value), Record(MODEL_KIND, "b", {})])
    append_tuned("a", TunedKernel(None, 1, 0.5, 1.0))
    found = Snapshot.now()
    assert not found.schedules and not any(found.confirmed.values())


def test_numbers_that_no_float_holds_are_of_no_verdict() -> None:
    fields = Model({A: 0.8}).judged().fields
    assert Verdict.of(fields | {"turns": float("inf")}) is None
    assert Verdict.of(fields | {"before": 10**400}) is None


@pytest.mark.parametrize("kept", [frozenset[int](), frozenset({0}), frozenset({0, 1})])
def test_programs_are_made_by_what_counts(
    kept: frozenset[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of what is tried are read in its place, and the store is as it was."""
    path = tmp_path / "m.mlir"
    path.write_text(TWO)
    tasks = kernel_tasks(decided(path))
    before = Snapshot.now()
    for task in tasks:
        record(task, schedules(task)[0])
    keys = [task.key for task in tasks]
    chosen: list[dict[str, object]] = []

    def judged(changed: Changed, measure: Any, counters: Any) -> Verdict:
        assert {key: list(names) for key, names in counters().items()} == {
            task.key: list(task.counters) for task in tasks
        }
        turns = measure([frozenset(keys[n] for n in kept)], 2)
        assert set(turns[0].kernels) == {"first", "second"} and len(turns[0].seconds) == 2
        return Verdict(frozenset(), changed, 1.0, 1.0, 1.0, 1.0, 0.0, 7)

    class Asked(Lowering):
        def within(self, *given: Any) -> LoweredModel:
            chosen.append({key: load_tuned()[key].chosen for key in keys})
            return super().within(*given)

    monkeypatch.setattr(braid.tuning.whole_model, "judge", judged)
    monkeypatch.setattr(braid.tuning.whole_model, "Lowering", Asked)
    whole(path, keys, before).confirm(lambda _: None)
    assert chosen == [
        {key: schedules(tasks[n])[0] if n in kept else None for n, key in enumerate(keys)}
    ]


def first_of_two(directory: Path) -> tuple[Path, KernelTask, Snapshot]:
    """Return a model of two kernels, the first of them, and its records before the search."""
    path = directory / "m.mlir"
    path.write_text(TWO)
    return path, kernel_tasks(decided(path))[0], Snapshot.now()


def test_a_model_that_crashes_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found by kernels alone stays then, and it is said why."""
    path, task, before = first_of_two(tmp_path)
    record(task, schedules(task)[-1])
    monkeypatch.setattr(braid.tuning.whole_model, "_WORKER", "braid.no_such_worker")
    said: list[str] = []
    assert whole(path, [task.key], before).confirm(said.append) == []
    assert said[0].startswith("the model as a whole was not compared: ")
    assert load_tuned()[task.key].chosen == schedules(task)[-1]


def test_a_library_that_is_slower_in_the_model_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are layouts chosen for it: what it costs is not known any more."""
    path, task, before = first_of_two(tmp_path)
    append_tuned(
        task.key,
        TunedKernel(
            None, task.default[0].family.version, 1.0, 1.0, str(task), 0.8, keeps_library=True
        ),
    )
    append_records({"cost": 0.4, "of another": 0.4}, {"cost": f"{LIBRARY_COST}{task}"})

    def judged(changed: Changed, *_: Any) -> Verdict:
        return Verdict(frozenset(), changed, 1.0, 1.0, 1.0, 0.9, 0.0, 7)

    monkeypatch.setattr(braid.tuning.whole_model, "judge", judged)
    said: list[str] = []
    whole(path, [task.key], before).confirm(said.append)
    assert said[0].startswith("with a library's kernels: ")
    assert not load_tuned()[task.key].keeps_library
    table = load_records()
    assert dict(table) == {"of another": 0.4}
    assert last_model()["kernels"] == Kernels.BEST


def test_turns_of_a_program(tmp_path: Path) -> None:
    """What takes little runs several times in a turn; a time is that of one run."""
    path = tmp_path / "m.mlir"
    path.write_text(TWO)
    clock = count()
    programs = Programs(lambda: next(clock) * 1e-4)  # each look at it takes so long
    trial = whole(path, [], Snapshot.now())
    read = partial(trial.runnable, Kernels.GENERATED)
    lowering = Lowering(trial.context, read, CompileOptions(jobs=1, profile=True))
    package = package_of(lowering.within(None, None))
    sent = Program(tuple(package.objects), package.weights, package.manifest.libraries)
    assert [programs.answer(sent), programs.answer(sent)] == [0, 1]
    found = programs.answer(TurnsRequest((1, 0), 3))
    assert isinstance(found, list) and len(found) == 2
    for turns in found:
        assert turns.seconds == pytest.approx([2e-5] * 3), "five runs of a turn"
        assert {name: len(each) for name, each in turns.kernels.items()} == {
            "first": 3,
            "second": 3,
        }


def test_a_worker_that_an_exception_ends_says_which() -> None:
    """And not only that there is a traceback."""
    worker = WorkerProcess("braid.tuning.model_worker")
    with pytest.raises(WorkerEndedError, match=r"^AttributeError: .*\(exit status 1\)$"):
        worker.ask("no request")
    worker.close()


def test_tuning_compares_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is searched is judged, after the last round, unless that is not wanted."""
    judged: list[Changed] = []

    def none_kept(changed: Changed, *_: Any) -> Verdict:
        judged.append(changed)
        return Verdict(frozenset(), changed, 1.0, 1.0, 1.0, 0.9, 0.0, 7)

    monkeypatch.setattr(braid.tuning.whole_model, "judge", none_kept)
    for whole_model in (True, False):
        report, _ = tune(
            monkeypatch, lambda n: 1.0 if n else 2.0, again=True, whole_model=whole_model
        )
        (kernel,) = load_tuned().values()
        assert len(judged) == 1 and len(judged[0]) == 1
        assert (kernel.chosen is None) == whole_model
        assert ("1 of 1 kernels are taken back" in report) == whole_model
