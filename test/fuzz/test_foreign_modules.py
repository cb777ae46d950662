"""Mutated modules of upstream's dialects give a diagnostic or correct results, never a crash."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

WORKER = Path(__file__).parent / "foreign.py"
SEED = int(os.environ.get("BRAID_FUZZ_SEED", "0")) * 10_000
"""Of the first change; `run.py` chooses another seed in each round."""


def check(seed: int, count: int) -> None:
    """Run seeds in a process of their own, so that a crash fails the test."""
    command = [sys.executable, str(WORKER), str(seed), str(count)]
    worker = subprocess.run(command, capture_output=True, text=True)
    said = f"status {worker.returncode}\n{worker.stdout[-4000:]}\n{worker.stderr[-2000:]}"
    assert worker.returncode == 0 and ", 0 wrong" in worker.stdout, said


def test_some_changes(record_property: Callable[[str, object], None]) -> None:
    record_property("cases", 12)
    check(SEED, 12)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_changes(part: int, record_property: Callable[[str, object], None]) -> None:
    record_property("cases", 100)
    check(SEED + 1000 + 100 * part, 100)
