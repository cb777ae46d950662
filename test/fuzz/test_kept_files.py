"""Damaged caches, measurements and profiles: the right result, or a diagnostic; no signal."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SEED = int(os.environ.get("BRAID_FUZZ_SEED", "0")) * 1_000_000
"""Of the first trial; `run.py` chooses another seed in each round."""
WORKER = Path(__file__).parent / "damage.py"


def damage(case: str, trials: int, seed: int, directory: Path) -> None:
    """Run trials in a separate process; its last words tell which one failed."""
    command = [sys.executable, str(WORKER), case, str(trials), str(seed), str(directory)]
    worker = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    lines = worker.stdout.splitlines()
    said = f"status {worker.returncode} after {lines[-1:]}\n{worker.stderr[-4000:]}"
    assert worker.returncode == 0 and lines[-1] == f"{trials} trials", said
    assert lines.count("nothing changed") <= 1 + trials // 5, "the damage does nothing"


@pytest.mark.parametrize(
    ("case", "trials"),
    [("artifacts", 8), ("kernels", 5), ("streams", 10), ("records", 30), ("profiles", 5)],
)
def test_damaged_files(
    case: str, trials: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("cases", trials)
    damage(case, trials, SEED, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "trials"),
    [
        ("artifacts", 300),
        ("kernels", 700),
        ("streams", 300),
        ("records", 200),
        ("profiles", 150),
    ],
)
def test_many_damaged_files(
    case: str, trials: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("cases", trials)
    damage(case, trials, SEED + 1000, tmp_path)
