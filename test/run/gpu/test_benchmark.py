"""The benchmark of GPUs in dry mode: what is right and what is not, and what a case may cost."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gpu_artifacts
from benchmarks.arguments import output_file
from benchmarks.case_process import READY, CaseLost, CaseProcess
from benchmarks.gpu import LEFT_OUT, Deadline, compile_cases, main, run_cases
from benchmarks.gpu_case import Case
from benchmarks.gpu_cases import cases
from benchmarks.gpu_run import Outcome, Settings, run_case

DRY = Settings("gpu-emulated", None, True, 1, False)


def small_case(kind: str) -> Case:
    return next(one for one in cases(small=True) if one.kind == kind)


def test_a_case_is_right_or_wrong() -> None:
    case = small_case("softmax")
    good = run_case(case, DRY)
    assert good.right and good.seconds is not None and good.rate.endswith("GB/s")
    other = replace(case, expected=lambda inputs, rows: np.zeros((len(rows), 96)))
    bad = run_case(other, DRY)
    assert not bad.right and bad.note == "allowed 1e-05" and not bad.lost
    broken = run_case(replace(case, text="func.func @main("), DRY)
    assert not broken.right and broken.lost and "error" in broken.note


def test_cases_are_compiled_alone() -> None:
    """For a missing GPU; the error is reported for its case."""
    case = small_case("softmax")
    chosen = [case, replace(case, text="func.func @main(")]
    found = list(compile_cases(chosen, replace(DRY, target="gpu-h100"), Deadline(600)))
    assert [one.right for one in found] == [True, False]
    assert found[0].compile_seconds > 0 and found[1].note
    assert [one.note for one in compile_cases(chosen, DRY, Deadline(0))] == [LEFT_OUT] * 2


def test_cases_run_from_artifacts(tmp_path: Path) -> None:
    """As on a machine without the compiler; missing cases are reported."""
    kept = replace(DRY, artifacts=tmp_path)
    model = next(one for one in cases(small=True) if one.name == "loop_if")
    chosen = [small_case("softmax"), model]
    assert [one.right for one in compile_cases(chosen, kept, Deadline(600))] == [True, True]
    found = [run_case(case, kept) for case in chosen]
    assert [one.right for one in found] == [True, True]
    path = gpu_artifacts.path_of(tmp_path, model).with_suffix(".npz")
    with np.load(path) as arrays:
        changed = {name: array + name.startswith("result") for name, array in arrays.items()}
    np.savez(path, **changed)
    assert not run_case(model, kept).right
    path.write_bytes(path.read_bytes()[:1000])
    damaged = run_case(model, kept)
    assert damaged.lost and f"'{path}' is damaged" in damaged.note
    path.unlink()
    assert "cannot open" in run_case(model, kept).note
    np.savez(path, **{name: array for name, array in changed.items() if "result" not in name})
    assert "is not of this model: 'result0" in run_case(model, kept).note
    missing = run_case(small_case("tanh"), kept)
    assert missing.lost and "cannot open" in missing.note
    program = [sys.executable, "-m", "benchmarks.gpu_once"]
    path = gpu_artifacts.path_of(tmp_path, chosen[0])
    assert subprocess.run([*program, str(path)], check=False).returncode == 0


def test_the_list_is_complete() -> None:
    """Full cases are of the kinds of small ones; names, by which they are asked for, differ.

    The first word of a kind is what it computes; how many are selected follows.
    """
    found = list(cases(small=False))
    small_kinds = {case.kind.split()[0] for case in cases(small=True)}
    assert {case.kind.split()[0] for case in found} == small_kinds
    products = [case for case in found if case.kind == "product"]
    assert len(products) >= 32 and {case.element for case in products} == {
        "bf16",
        "f16",
        "i8",
        "f32",
    }
    for small in (False, True):
        assert max(Counter(case.name for case in cases(small)).values()) == 1


@pytest.mark.parametrize("kind", ["attention", "linear", "gather", "pool", "resize", "depthwise"])
def test_cases_are_right(kind: str) -> None:
    outcome = run_case(small_case(kind), DRY)
    assert outcome.right and not outcome.rate.startswith("0 "), outcome.note


def fragile(channel: Connection) -> None:
    """Answers with the name, unless that is a command."""
    channel.send(READY)
    while (request := channel.recv()) is not None:
        name, _ = request
        if name == "dies":
            os._exit(7)
        if name == "hangs":
            time.sleep(1000)
        channel.send(Outcome("kind", name, name != "lost", lost=name == "lost"))


def broken(channel: Connection) -> None:
    """End at once."""
    os._exit(9)


def outcomes(names: list[str], seconds: float, process: CaseProcess) -> list[Outcome]:
    chosen = [Case("kind", name) for name in names]
    return list(run_cases(chosen, process, Deadline(seconds)))


def test_what_dies_or_hangs_costs_one_case() -> None:
    process = CaseProcess(fragile, method="fork")
    process.start()
    found = outcomes(["first", "dies", "second", "lost", "third"], 60, process)
    assert [(one.right, one.lost) for one in found] == [
        *((True, False), (False, True), (True, False), (False, True), (True, False)),
    ]
    assert found[1].note == "the process ended with status 7"
    with pytest.raises(CaseLost, match="took too long"):
        process.answer(("hangs", False), 0.1)
    assert process.answer(("again", False), 60).name == "again"
    process.end()


def test_a_process_that_never_starts() -> None:
    process = CaseProcess(broken, method="fork")
    process.start()
    found = outcomes(["first", "second"], 60, process)
    assert [one.note for one in found] == ["the process ended with status 9"] * 2


def stuck(channel: Connection) -> None:
    """Never becomes ready, as where a driver does not answer."""
    time.sleep(1000)


def test_a_process_that_is_never_ready() -> None:
    process = CaseProcess(stuck, method="fork", starting_seconds=0.1)
    process.start()
    found = outcomes(["first", "second"], 60, process)
    assert [(one.right, one.lost) for one in found] == [(False, True)] * 2
    assert {one.note for one in found} == {"the process was not ready after 0.1 seconds"}
    process.serve = fragile
    process.starting_seconds = 60
    process.restart()
    assert process.answer(("again", False), 60).name == "again"
    process.end()


def answers_once(channel: Connection) -> None:
    channel.send(READY)
    channel.send(Outcome("kind", channel.recv()[0], True))
    os._exit(3)


def reads_nothing(channel: Connection) -> None:
    channel.send(READY)
    time.sleep(0.2)
    os._exit(4)


@pytest.mark.parametrize(("serve", "status"), [(answers_once, 3), (reads_nothing, 4)])
def test_a_process_that_ends_between_cases(
    serve: Callable[[Connection], None], status: int
) -> None:
    """As if a driver's own thread ended the process."""
    process = CaseProcess(serve, method="fork")
    process.start()
    found: list[str] = []
    for _ in range(3):
        try:
            found.append(process.answer(("case", False), 60).name)
        except CaseLost as lost:
            found.append(str(lost))
        time.sleep(0.3)
    assert f"the process ended with status {status}" in found
    assert len(found) == 3
    process.end()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "nothing"], "'nothing' names none of 20 cases: 'bf16 40×72×48', "),
        (["--runs", "0"], "expected a number of at least 1, got '0'"),
        (["--json", "{file}/found.json"], "cannot write '{file}/found.json': "),
        (["--json", "{folder}"], "cannot write '{folder}': Is a directory"),
    ],
)
def test_arguments_are_refused_before_anything_runs(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"file": tmp_path / "file", "folder": tmp_path}
    places["file"].touch()
    own = [text.format(**places) for text in arguments]
    monkeypatch.setattr(sys, "argv", ["gpu", "--dry", *own])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert message.format(**places) in capsys.readouterr().err


def test_a_file_that_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    path = output_file(str(tmp_path / "folder" / "found.json"))
    assert path.parent.is_dir() and not path.exists()
    path.write_text("{}")
    assert output_file(str(path)).read_text() == "{}"


def test_nothing_runs_beyond_the_deadline() -> None:
    process = CaseProcess(fragile, method="fork")
    process.start()
    process.answer(("first", False), 60)
    begin = time.monotonic()
    found = outcomes(["hangs", "second"], 0.5, process)
    assert [one.note for one in found] == [LEFT_OUT, LEFT_OUT] and time.monotonic() - begin < 20
    process.end()
