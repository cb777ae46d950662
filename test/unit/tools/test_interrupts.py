"""Ctrl-C while a tool starts: status 130, and nothing on standard error."""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

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
    """The numbers of the modules that a tool imports once it minds Ctrl-C."""
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
