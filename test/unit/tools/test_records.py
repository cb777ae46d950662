"""Records are shown, moved between machines, and cleared of what was replaced."""

import json
import math
import os
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from braid.support.records.record_store import Record, default_store
from braid.targets.costs.cost_records import append_records, withdraw_records
from braid.targets.costs.schedule_records import TunedKernel, append_tuned, fields_of, load_tuned
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.calibration import Calibration, keep_calibration
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.identity import processor_name
from braid.tools.app import app
from braid.tools.cli import main
from braid.tuning.record_check import family_versions
from braid.tuning.search import LevelResult, Stop


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "here"))


def braid(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["records", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def fill() -> None:
    chosen = KernelSchedule.of("gemm", {"rows": 4})
    append_tuned("a", TunedKernel(None, 1, 2e-6, 2e-6, "first"))
    append_tuned("a", TunedKernel(chosen, 1, 1e-6, 2e-6, "first", 5e-7, True))
    append_tuned("b", TunedKernel(None, 1, 3e-6, 3e-6, "second"))


def test_show_and_best() -> None:
    fill()
    assert "schedule" in braid("show") and "3" in braid("show")
    lines = braid("best").splitlines()
    assert lines[0] == "first"
    assert lines[1] == "  gemm rows=4: 1 µs, default 2 µs, library 0.5 µs (kept)"
    assert lines[2:] == ["second", "  the default: 3 µs, default 3 µs"]


def test_best_with_steps() -> None:
    step = LevelResult(0, 3, 2, 1, 1e-6, 0.5, 0.7, Stop.BELOW)
    steps, refused = (step.fields, {"level": "none"}), {"gemm rows=9": "wrong results"}
    append_tuned("a", TunedKernel(None, 1, 2e-6, 2e-6, "first", steps=steps, refused=refused))
    shown = braid("best", "--steps").splitlines()
    assert shown[2:] == [f"    {step}", "    wrong results: gemm rows=9"]
    assert len(braid("best").splitlines()) == 2


def test_gc_keeps_the_last() -> None:
    assert braid("gc") == "0 records removed\n"
    fill()
    before = dict(load_tuned())
    assert braid("gc") == "1 records removed\n"
    assert load_tuned() == before and default_store().count() == {"schedule": 2}


def test_to_another_machine_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill()
    before = dict(load_tuned())
    file = tmp_path / "records.jsonl"
    braid("export", str(file))
    assert len(file.read_text().splitlines()) == 3
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "there"))
    assert braid("import", str(file)) == "3 records added, 0 were already present\n"
    assert load_tuned() == before
    assert braid("import", str(file)) == "0 records added, 3 were already present\n"
    braid("export", str(tmp_path / "again.jsonl"), "--kind", "schedule")
    assert (tmp_path / "again.jsonl").read_text() == file.read_text()


GOOD: dict[str, object] = {
    **{"kind": "x", "key": "k", "value": {}},
    **{"machine": "", "created": 1.0, "version": "1"},
}
"""The fields of a record."""


@pytest.mark.parametrize(
    "line",
    [
        *("{", "[]", "{}", json.dumps({"kind": 1, "key": "k", "value": {}}), '{"kind": "x"}'),
        json.dumps({**GOOD, "value": {"seconds": math.nan}}),
        json.dumps({**GOOD, "value": {"seconds": [math.inf]}}),
        json.dumps({**GOOD, "created": math.inf}),
        json.dumps({**GOOD, "created": 1}),
        json.dumps({**GOOD, "key": "\ud800"}),
        json.dumps({**GOOD, "machine": "a\0b"}),
        json.dumps({**GOOD, "more": 1}),
    ],
)
def test_lines_that_are_no_records(line: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(f"{json.dumps(GOOD)}\n{line}\n")
    result = CliRunner().invoke(app, ["records", "import", str(tmp_path / "f")])
    assert result.exit_code == 1 and "line 2" in str(result.exception) + result.output
    assert default_store().count() == {}, "all or none"


def test_texts_may_have_other_ends_of_lines(tmp_path: Path) -> None:
    text = "a\u2028b\x85c\rd"
    line = json.dumps({**GOOD, "key": text, "value": {"what": text}}, ensure_ascii=False)
    (tmp_path / "f").write_text(f"{line}\n", newline="")
    assert braid("import", str(tmp_path / "f")) == "1 records added, 0 were already present\n"
    assert default_store().read("x") == {text: {"what": text}}


def test_records_of_others_stay() -> None:
    default_store().append([Record("cost", "k", {"seconds": 1.0})])
    assert "cost" in braid("show", "--kind", "cost") and braid("best") == ""


def test_a_line_that_stands_twice_is_one_record(tmp_path: Path) -> None:
    line = json.dumps(GOOD)
    (tmp_path / "f").write_text(f"{line}\n{line}\n")
    assert braid("import", str(tmp_path / "f")) == "1 records added, 0 were already present\n"
    assert len(default_store().salvaged()) == 1


def check() -> tuple[int, str]:
    result = CliRunner().invoke(app, ["records", "check"])
    return result.exit_code, f"{result.output}{result.exception or ''}"


def test_check_of_records_that_count() -> None:
    assert check() == (0, "all of 0 records can be used\n")
    chosen = KernelSchedule.of("gemm", {"rows": 4})
    (version,) = family_versions()["gemm"]
    append_tuned("a", TunedKernel(KernelSchedule.of("lost", {}), 1, 1e-6, 2e-6, "replaced"))
    append_tuned("a", TunedKernel(chosen, version, 1e-6, 2e-6, "first"))
    append_tuned("b", TunedKernel(None, 1, 1e-6, 1e-6, "the default"))
    append_records({"c": 1e-6}, {"c": "measured"})
    withdraw_records({"d": "measured, and slower in a model"})
    calibration = Calibration({"launch_seconds": 1e-6}, {})
    keep_calibration(cpu_machine(NATIVE), calibration)
    default_store().append([Record("cost", "e", {"seconds": 1e-6}, "another", version="0.0")])
    assert check() == (0, "all of 7 records can be used, 1 are of other machines\n")


HERE = processor_name()
GONE = fields_of(TunedKernel(KernelSchedule.of("lost", {}), 1, 1e-6, 2e-6, "a product"))
OLDER = {**GONE, "family": "gemm", "version": 0}
CALIBRATED = {"facts": {"launch_seconds": 1e-6}, "details": {}}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Record("schedule", "a", GONE), "schedule a product: there is no kernel family 'lost'"),
        (Record("schedule", "a", OLDER), "it was searched with 0"),
        (Record("schedule", "a", {**OLDER, "schedule": {"rows": "4"}}), "fields of its kind"),
        (Record("cost", "a", {"seconds": -1.0}, HERE), "cost a: its value does not have"),
        (Record("cost", "a", {"seconds": 1.0}, HERE, version="0.0"), "braid 0.0 measured it"),
        (Record("calibration", "a", CALIBRATED, HERE), "measured on other cores"),
        (Record("calibration", "a", {}, HERE), "fields of its kind"),
        (Record("probe", "a", {}), "fields of its kind"),
        (Record("model", "a", {}), "fields of its kind"),
        (Record("trials", "a", {}), "fields of its kind"),
        (Record("strange", "a", {}), "nothing reads records of kind 'strange'"),
    ],
)
def test_check_lists_what_does_not_count(record: Record, reason: str) -> None:
    default_store().append([record])
    status, output = check()
    assert status == 1 and reason in output
    assert "1 of 1 records are not used" in output


def test_check_of_a_damaged_store() -> None:
    fill()
    (path,) = (path for path in default_store().files() if path.suffix != ".lock")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE records SET value = '{}' WHERE number = 2")
    database.close()
    status, output = check()
    assert status == 1 and f"{path}: row 2: it does not match its digest" in output
    whole = path.read_bytes()
    for content in (b"no database at all", whole[: len(whole) // 2], whole[:4096] + bytes(4096)):
        path.write_bytes(content)
        status, output = check()
        assert status == 1 and str(path) in output, output
        assert path.read_bytes() == content, "nothing is repaired"


def test_records_come_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A device may never end, and a pipe may have no writer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in (("/dev/zero", "a device"), (str(pipe), "a pipe"), ("/", "a directory")):
        assert main(["records", "import", path]) == 1
        assert f"it is {kind}, expected a file" in capsys.readouterr().err
