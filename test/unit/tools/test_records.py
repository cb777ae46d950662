"""Records are shown, moved between machines, and cleared of what was replaced."""

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from braid.support.record_store import Record, default_store
from braid.targets.costs.schedule_records import TunedKernel, append_tuned, load_tuned
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.tools.app import app
from braid.tuning.search import Step, Stop


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
    step = Step(0, 3, 2, 1, 1e-6, 0.5, 0.7, Stop.BELOW)
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
