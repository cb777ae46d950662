"""Typical mistakes on the command line: each is told where, what, and how to go on."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from braid.driver.options import options_of
from braid.tools.cli import main
from test.unit.tools.mistakes import MISTAKES, Mistake, is_superuser, write_files

OTHER_API = re.compile(
    r"braid\.(?:compile|load|from_torch)\b|\bkeyword\b|\bNone\b|Traceback|internal error|"
    rf"\b(?:{'|'.join(options_of())})(?:=|\[)"
)
"""Words of Python's API, which is not what was called, and of crashes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mistakes")
    write_files(path)
    return path


def test_there_are_enough() -> None:
    assert len(MISTAKES) >= 60 and len({m.line for m in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m.line for m in MISTAKES])
def test_a_mistake(
    mistake: Mistake,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "unreadable" in mistake.line and is_superuser():
        pytest.skip("permissions keep the superuser from nothing")
    if "/dev/full" in mistake.line and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    monkeypatch.chdir(folder)
    before = {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}
    assert main(shlex.split(mistake.line)) == 1
    out, err = capsys.readouterr()
    if "--json" in mistake.line:  # the same in the form that was asked for
        (error,) = json.loads(out)["diagnostics"]
        out, err = "", f"{error['message']}\nhint: {error['hint']}"
    assert out == ""
    for what in ("where", "expected", "found", "way_out"):
        words = getattr(mistake, what)
        assert any(word in err for word in words.split("|")), f"no {what} ({words}):\n{err}"
    assert not OTHER_API.search(err), err
    assert {path: path.lstat().st_mtime_ns for path in folder.rglob("*")} == before


def braid(folder: Path, *words: str, **how: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "braid.tools.cli", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, text=True, **{**pipes, **how})  # pyright: ignore


def test_a_reader_that_goes_away(folder: Path) -> None:
    reader, writer = os.pipe()
    process = braid(folder, "import", "good.onnx", stdout=writer)
    os.close(writer)
    os.close(reader)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err == ""
