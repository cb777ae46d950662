"""Ctrl-C at any moment of a tool: status 130, and nothing on standard error."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from braid import __version__
from braid.support import cache_files
from braid.tools.cli import main

_MOMENTS = 20
_TOOLS: dict[str, tuple[str, list[str]]] = {
    "braid.tools.cli": ("braid.tools.app", ["import", "no_such.onnx"]),
    "braid.tools.braid_opt": ("braid.tools.opt.command", []),
}
"""The module that a tool imports, and arguments with which it does not end soon after that."""


def _started(
    tool: str, at_module: Callable[[int, str], bool], before: Callable[[], None] | None = None
) -> tuple[int, str]:
    """Status and messages of a tool that gets SIGINT when it has imported a module.

    `at_module` is asked after each one, by how many came before and its name.
    """
    command = [sys.executable, "-X", "importtime", "-m", tool, *_TOOLS[tool][1]]
    messages = ""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=before
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        modules = 0
        for line in process.stderr:
            if not line.startswith("import time:"):
                messages += line
                continue
            if at_module(modules, line.split("|")[-1].strip()):
                process.send_signal(signal.SIGINT)
                process.stdin.close()
            modules += 1
    return process.returncode, messages


def _imported(tool: str) -> Sequence[int]:
    """Return the numbers of the modules that a tool has imported when it handles Ctrl-C."""
    names: list[str] = []

    def note(_: int, name: str) -> bool:
        names.append(name)
        return name == _TOOLS[tool][0]

    assert _started(tool, note) == (130, "")
    first, last = (
        names.index(name) for name in ("braid.tools.terminal.interrupts", _TOOLS[tool][0])
    )
    return range(first + 2, last)


@pytest.mark.parametrize("tool", _TOOLS)
def test_it_ends_at_once_and_says_nothing(tool: str) -> None:
    modules = _imported(tool)
    moments = [modules[len(modules) * n // _MOMENTS] for n in range(_MOMENTS)]
    found = {m: _started(tool, lambda number, _, m=m: number == m) for m in moments}
    assert found == dict.fromkeys(moments, (130, ""))


@pytest.mark.parametrize("tool", _TOOLS)
def test_a_background_job_goes_on(tool: str) -> None:
    """Shells start those with Ctrl-C ignored."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    status, _ = _started(tool, lambda _, name: name == "braid.tools.terminal.exhaustion", ignore)
    assert status in (0, 1)


def _interrupted(command: str) -> dict[str, Any]:
    """Return the document of a command that Ctrl-C has ended."""
    error = {"severity": "error", "message": "interrupted", "hint": None}
    place = {"file": None, "line": None, "column": None, "notes": []}
    return {
        "braid": __version__,
        "command": command,
        "ok": False,
        "result": None,
        "diagnostics": [{**error, **place}],
    }


@pytest.mark.parametrize("arguments", [["cache", "show", "--json"], ["cache", "show"]])
def test_a_command_that_works(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cache_files, "cache_directory", interrupt)
    assert main(arguments) == 130
    said = capsys.readouterr()
    assert said.err.strip() == ""
    if "--json" in arguments:
        assert json.loads(said.out) == _interrupted("cache show")
    else:
        assert said.out == ""


def _ended(program: str, arguments: Sequence[str]) -> tuple[int, str, str]:
    """Status, results and messages of a tool that gets SIGINT where its program prints a hash."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        said = ""
        while not said.endswith("#"):
            said += process.stdout.read(1) or "#"
        process.send_signal(signal.SIGINT)
        said += process.stdout.read()
        return process.wait(), said, process.stderr.read()


_AT_THE_START = """
import builtins, sys, time
from braid.tools.cli import main
load = builtins.__import__
def slow(name, *rest):
    if name == "braid.tools.app":
        print("#", end="", flush=True)
        time.sleep(60)
    return load(name, *rest)
builtins.__import__ = slow
sys.exit(main())
"""
_AT_THE_END = """
import atexit, sys, time
from braid.tools.cli import main
def wait():
    print("#", end="", flush=True)
    time.sleep(60)
atexit.register(wait)
sys.exit(main())
"""


def test_the_document_of_a_command_that_starts() -> None:
    status, said, errors = _ended(_AT_THE_START, ["cache", "show", "--json"])
    assert (status, errors) == (130, "")
    assert json.loads(said.lstrip("#")) == _interrupted("")


@pytest.mark.parametrize(("arguments", "status"), [(["--version", "--json"], 0), (["cache"], 1)])
def test_when_all_is_said_the_status_is_that_of_the_command(
    arguments: list[str], status: int
) -> None:
    assert _ended(_AT_THE_END, arguments)[0] == status
