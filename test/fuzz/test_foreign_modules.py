"""Changed models of upstream's dialects: a diagnostic or the right numbers, never a crash."""

import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).parent / "foreign.py"


def check(seed: int, count: int) -> None:
    """Run seeds in a process of their own, where a signal is seen."""
    command = [sys.executable, str(WORKER), str(seed), str(count)]
    worker = subprocess.run(command, capture_output=True, text=True)
    said = f"status {worker.returncode}\n{worker.stdout[-4000:]}\n{worker.stderr[-2000:]}"
    assert worker.returncode == 0 and ", 0 wrong" in worker.stdout, said


def test_some_changes() -> None:
    check(0, 12)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_changes(part: int) -> None:
    check(1000 + 100 * part, 100)
