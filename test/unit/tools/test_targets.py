"""`braid targets`: tables for people, JSON for tools, and what is measured is kept."""

import json
from pathlib import Path

import pytest

from braid.targets.machines.calibration import Calibration, load_calibration
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.tools.cli import main
from braid.tuning import calibrate

FACTS = {"flops": 123e9, "memory_bandwidth": 4e9, "launch_seconds": 3e-6}


@pytest.fixture(autouse=True)
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "150")
    measure = lambda machine, notify: Calibration(FACTS, {"flops": "a test"})  # noqa: E731
    monkeypatch.setattr(calibrate, "calibrate", measure)


def test_what_is_measured_is_kept_and_shown(capsys) -> None:
    assert main(["targets", "calibrate", "--json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["result"]["devices"]
    assert main(["targets", "calibrate"]) == 0
    assert "123 G/s" in capsys.readouterr().out
    calibration = load_calibration(cpu_machine(NATIVE))
    assert calibration is not None and calibration.facts == FACTS
    assert main(["targets", "show"]) == 0
    shown = capsys.readouterr().out
    for text in ("cpu:0", "native", "123 G/s", "4 GB/s", "3 us", "0.5 us", "vectors.toml"):
        assert text in shown
    figures = {figure["name"]: figure for figure in device["figures"]}
    assert figures["flops"]["measured"] == figures["flops"]["value"] == 123e9
    assert figures["flops"]["detail"] == "a test"


def test_a_chip_has_links_units_and_memories(capsys) -> None:
    assert main(["targets", "show", "npu-small"]) == 0
    shown = capsys.readouterr().out
    for text in ("npu:0", "npu-sim", "8.5 GB/s", "10 us", "512 G/s", "0.03 us", "scratchpad"):
        assert text in shown
    assert main(["targets", "show", "npu-small", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["result"]
    assert [link["latency"] for link in found["links"]] == [10e-6, 10e-6]
    assert [device["name"] for device in found["devices"]] == ["npu:0", "cpu:0"]
    units = {unit["name"]: unit["rate"] for unit in found["backends"][0]["units"]}
    assert units["matrix"] == 512e9


def test_another_cpu_is_not_measured(capsys) -> None:
    assert main(["targets", "calibrate"]) == 0
    assert main(["targets", "show", "--cpu", "haswell"]) == 0
    shown = capsys.readouterr().out.partition("target host")[2]
    assert "haswell" in shown and "123 G/s" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nowhere"], "there is no target 'nowhere'"),
        (["show", "--cpu", "nothing"], "there is no CPU 'nothing'"),
    ],
)
def test_mistakes_are_diagnostics(arguments: list[str], message: str, capsys) -> None:
    assert main(["targets", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert load_calibration(cpu_machine(NATIVE)) is None


def test_what_cannot_be_kept_is_a_diagnostic(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "file"))
    # Before a minute is spent on measuring.
    monkeypatch.setattr(calibrate, "calibrate", lambda machine, notify: pytest.fail("measured"))
    assert main(["targets", "calibrate"]) == 1
    assert "cannot be kept" in capsys.readouterr().err
