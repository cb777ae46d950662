"""`--json` of every command prints one document that the schema describes; -q, -v and progress."""

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import typer

from braid import __version__
from braid.support.progress import Progress, telling_progress
from braid.targets.machines.calibration import Calibration
from braid.tools.app import app
from braid.tools.cli import main
from braid.tools.terminal.answer import document
from braid.tools.terminal.phases import step_text
from braid.tuning import calibrate
from test.unit.tools.mistakes import write_files

SCHEMA: dict[str, Any] = json.loads(
    files("braid.tools.terminal").joinpath("output.schema.json").read_text()
)
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)

RUNS = (
    "import good.onnx",
    "import good.onnx -o good.mlir",
    "compile good.onnx -o again.braid",
    "compile good.onnx --emit asm",
    "diff good.onnx --b '--threads 2'",
    "diff good.onnx open.onnx --measure 1",
    "diff good.braid again.braid",
    "explain good.onnx",
    "explain good.onnx --layouts --memory --html page.html",
    "inspect good.onnx",
    "inspect open.onnx",
    "inspect good.braid",
    "run good.onnx --random --profile p.json --output-dir out",
    "bench good.onnx --runs 1",
    "bench good.onnx --runs 1 --stream",
    "verify good.onnx",
    "simulate good.onnx -o s.bin",
    "tune good.onnx --time 5 --levels 1",
    "reduce good.onnx --command false",
    "cache show",
    "cache verify",
    "profile merge p.json p.json -o sum.json",
    "records show",
    "records best --steps",
    "records gc",
    "records check",
    "records export r.jsonl",
    "records import r.jsonl",
    "serve token add ann",
    "serve token list",
    "serve token remove ann",
    "targets show",
    "targets calibrate",
    "cache clear",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("json")
    write_files(path)
    # What runs make that `make test` may leave out.
    shutil.copy(path / "good.braid", path / "again.braid")
    profile = str(path / "p.json")
    assert main(["run", str(path / "good.onnx"), "--random", "-q", "--profile", profile]) == 0
    return path


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BRAID_CACHE_DIR", str(folder / "cache"))
    measured = Calibration({"flops": 1e9}, {})
    monkeypatch.setattr(calibrate, "calibrate", lambda *_: measured)  # takes most of a minute


def commands(group: Any, before: str = "") -> Iterator[str]:
    """Yield the names of all commands; a group that does something itself is one."""
    for name, command in group.commands.items():
        is_group = hasattr(command, "commands")
        if not is_group or command.invoke_without_command:
            yield before + name
        if is_group:
            yield from commands(command, f"{before}{name} ")


def test_every_command_is_described_and_run() -> None:
    known = set(commands(typer.main.get_command(app)))
    assert {name.replace(" ", "-") for name in known} == set(SCHEMA["$defs"])
    named = ([name for name in known if f"{line} ".startswith(f"{name} ")] for line in RUNS)
    run = {max(names, key=len) for names in named}
    assert known - run == {"serve"}  # which test_serve.py runs


def said(line: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    import shlex

    status = main([*shlex.split(line), "--json"])
    out, err = capsys.readouterr()
    found = json.loads(out)
    VALIDATOR.validate(found)
    assert found["ok"] == (status == 0) and found["braid"] == __version__
    assert err == "", err
    return found


@pytest.mark.parametrize("line", RUNS)
def test_a_document(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(line, capsys)
    assert found["ok"], found["diagnostics"]
    assert line.startswith(found["command"]) and found["command"]
    described = SCHEMA["$defs"][found["command"].replace(" ", "-")]["properties"]
    assert set(found["result"]) <= set(described)


@pytest.mark.parametrize(
    ("line", "command", "message"),
    [
        ("compile none.onnx", "compile", "cannot read 'none.onnx'"),
        ("compile odd.onnx", "compile", "Frobnicate"),
        ("compile bad.mlir", "compile", "Expected"),
        ("compile good.onnx --frobnicate", "compile", "No such option"),
        ("cache shwo", "cache", "No such command"),
        ("frobnicate", "", "No such command"),
        ("cache", "cache", "expected one of show, verify, clear"),
        ("records -v", "records", "expected one of show, best"),
        ("serve token", "serve token", "expected one of add"),
        ("tune good.onnx --interactive", "tune", "--interactive"),
    ],
)
def test_a_failure(
    line: str, command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = said(line, capsys)
    assert not found["ok"] and found["result"] is None and found["command"] == command
    (error,) = found["diagnostics"]
    assert error["severity"] == "error" and message in error["message"]


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert said("--version", capsys)["result"] == {"version": __version__}


def test_options_of_all_commands_stand_behind_their_group_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cache", "--json", "show"]) == 0
    assert json.loads(capsys.readouterr().out)["command"] == "cache show"


def test_a_check_that_fails_has_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    found = said("diff good.onnx --b '--numerics strict' --exit-code", capsys)
    assert found["ok"] and found["result"]["equal"]  # a product alone is decided alike
    found = said("diff good.onnx open.onnx --exit-code", capsys)
    assert not found["ok"] and not found["result"]["equal"] and found["diagnostics"] == []


def test_numbers_that_json_has_not() -> None:
    text = document("1", "run", {"x": [float("nan"), float("inf"), 1.0]}, 0, ())
    assert json.loads(text)["result"] == {"x": [None, None, 1.0]}


def test_quiet_and_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "good.onnx", "--untuned", "probe", "-o", "q.braid", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["compile", "open.onnx", "-o", "v.braid", "-v"]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "passes in" in err and "select-layouts: " in err
    assert "compiled <braid.Model" in err and "passes 1 of" not in err
    assert main(["-vv", "compile", "open.onnx", "--no-cache", "-o", "v.braid"]) == 0
    assert "passes 1 of" in capsys.readouterr().err
    assert main(["compile", "none.onnx", "-q"]) == 1
    assert "cannot read" in capsys.readouterr().err


def test_help_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["compile"], ["cache"], ["cache", "show"], ["serve", "token", "add"]):
        assert main([*words, "-h"]) == 0
        assert "Usage: braid" in capsys.readouterr().out


def test_steps_are_counted() -> None:
    events: list[Progress] = []
    with telling_progress(events.append):
        assert main(["compile", "good.onnx", "--no-cache", "-o", "p.braid", "-q"]) == 0
    texts = list(map(step_text, events))
    assert texts[0].startswith("pass 1 of ") and "lowering kernel 1 of 1" in texts
    assert step_text(Progress("compile", 11, 47)) == "kernel 12 of 47"


@pytest.mark.parametrize("option", ["", "-q", "--json"])
def test_progress_is_shown_in_terminals(option: str, folder: Path) -> None:
    """On standard error, where somebody looks."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "braid.tools.cli", "compile", "good.onnx", "-o", "t.braid"]
    options = ["--no-cache", *([option] if option else [])]
    process = subprocess.Popen(
        [*command, *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "BRAID_CACHE_DIR": str(folder / "fresh")},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(leader)
    assert process.wait(60) == 0
    assert (b" of " in shown) == (option == ""), shown
