"""`braid profile record`: what each run of a model took, kernels and what is between them."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest

from benchmarks.models.small import small_squeezenet
from braid.analysis.profile.profile_file import OpRecord, merge_records, read_record
from braid.runtime.profile_entries import ProfileEntry
from braid.support.errors import BraidError
from braid.tools.cli import main
from braid.tools.commands.recording import TimedRun, profile_of, table_of


def entry(count: int, seconds: float) -> ProfileEntry:
    return ProfileEntry(count, seconds, {"ab->ab": ProfileEntry(count, seconds)})


RUNS = [
    TimedRun(1.0, {"a": entry(1, 0.5), "b": entry(2, 0.2)}),
    TimedRun(2.0, {"a": entry(1, 0.7)}),
    TimedRun(3.0, {"a": entry(1, 1.5), "b": entry(2, 0.4)}),
]


def test_sums_and_quartiles_over_runs() -> None:
    profile = profile_of(Path("m"), {"x": (1,)}, RUNS)
    assert profile.runs == OpRecord(3, 6.0, quartiles=(1.5, 2.0, 2.5))
    a, b = profile.ops["a"], profile.ops["b"]
    assert (a.count, a.seconds) == (3, pytest.approx(2.7))
    assert a.quartiles == pytest.approx((0.6, 0.7, 1.1))
    # In a run without it, it took nothing.
    assert b.quartiles == pytest.approx((0.1, 0.2, 0.3)) and b.count == 4
    assert a.layouts["ab->ab"].quartiles == a.quartiles


def test_the_table_adds_up() -> None:
    table = table_of(profile_of(Path("m"), {}, RUNS))
    assert [row[0] for row in table.rows] == ["a", "b", "between kernels", "one run"]
    assert [row[-1] for row in table.rows] == ["45.0%", "10.0%", "45.0%", "100%"]


def test_files_are_read_and_merged(tmp_path: Path) -> None:
    profile = profile_of(Path("m"), {"x": (1,)}, RUNS)
    file = tmp_path / "p.json"
    file.write_bytes(profile.to_bytes())
    assert read_record(file) == profile
    merged = merge_records([file, file])
    assert merged.runs is not None and merged.runs.count == 6
    # Quartiles of two profiles say nothing of both together.
    assert merged.ops["a"].quartiles is None and merged.runs.quartiles is None
    data = json.loads(file.read_text())
    data["runs"]["quartiles"] = [3.0, 2.0, 1.0]
    file.write_text(json.dumps(data))
    with pytest.raises(BraidError, match="not in order"):
        read_record(file)


def test_explain_has_the_time_between_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = tmp_path / "net.onnx", tmp_path / "p.json"
    onnx.save(small_squeezenet(), model)
    assert main(["profile", "record", str(model), "-o", str(file), "--runs", "4"]) == 0
    assert "between kernels" in capsys.readouterr().out
    runs = json.loads(file.read_text())["runs"]
    assert runs["count"] == 4 and len(runs["quartiles"]) == 3
    assert main(["explain", str(model), "--use-profile", str(file), "--json"]) == 0
    page: Any = json.loads(capsys.readouterr().out)["result"]["page"]
    summary, kernels = page["summary"], page["kernels"]
    assert summary["is_measured"] and summary["seconds"] == pytest.approx(runs["seconds"] / 4)
    assert summary["measured_kernels"] > 0
    rest = summary["seconds"] - sum(kernel["time"] for kernel in kernels)
    assert summary["between"] == pytest.approx(rest)
    measured = next(kernel["measured"] for kernel in kernels if kernel["measured"])
    assert measured["low"] <= measured["median"] <= measured["high"]


def test_disturbed_runs_are_left_out() -> None:
    calm = [TimedRun(1.0 + 0.01 * n, {"a": entry(1, 0.5)}) for n in range(9)]
    profile = profile_of(Path("m"), {}, [*calm, TimedRun(9.0, {"a": entry(1, 8.5)})])
    assert profile.runs is not None and profile.runs.count == 9
    assert profile.ops["a"].seconds == pytest.approx(9 * 0.5)
    # Of a few runs nobody can say which is disturbed.
    few = profile_of(Path("m"), {}, [*calm[:4], TimedRun(9.0, {"a": entry(1, 8.5)})])
    assert few.runs is not None and few.runs.count == 5
    # Where the system took the CPU away in most of them, the others are still known.
    taken = [run._replace(seconds=4.0, preemptions=2) for run in [*calm, *calm]]
    assert profile_of(Path("m"), {}, [*taken, *calm]) == profile_of(Path("m"), {}, calm)


def test_all_kernels_and_the_rest_add_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, trace = tmp_path / "net.onnx", tmp_path / "trace.json"
    onnx.save(small_squeezenet(), model)
    command = ["bench", str(model), "--runs", "9", "--by-kernel", "--trace", str(trace), "--json"]
    assert main(command) == 0
    result: Any = json.loads(capsys.readouterr().out)["result"]
    rows = result["kernels"]
    assert [row["kernel"] for row in rows].count("between kernels") == 1
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert all(row["share"] >= 0 for row in rows)
    events = json.loads(trace.read_text())["traceEvents"]
    run = next(event for event in events if event.get("cat") == "run")
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert kernels and sum(event["dur"] for event in kernels) <= run["dur"]


def test_a_profile_has_a_timeline_and_counters(tmp_path: Path) -> None:
    model, file = tmp_path / "net.onnx", tmp_path / "p.json"
    onnx.save(small_squeezenet(), model)
    command = ["profile", "record", str(model), "-o", str(file), "--runs", "2"]
    assert main([*command, "--threads", "1"]) == 0
    profile = read_record(file)
    assert {span.place for span in profile.timeline} == {"thread 1"}
    assert {span.name for span in profile.timeline} <= set(profile.ops)
    for before, after in pairwise(profile.timeline):
        assert before.end <= after.begin
    counted = {name for record in profile.ops.values() for name in record.counters}
    assert counted.isdisjoint(profile.counted.missing) and profile.counted.runs > 0
    assert counted | set(profile.counted.missing) >= {"cycles", "task_clock_ns"}
    twice = merge_records([file, file])
    assert twice.counted.runs == 2 * profile.counted.runs
    data = json.loads(file.read_text())
    data["timeline"][0][3] = -1.0
    file.write_text(json.dumps(data))
    with pytest.raises(BraidError, match="not a profile of braid"):
        read_record(file)
