"""Exhausted memory gives an error message wherever in a command it occurs."""

import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "tools/braid/Inputs/negated.mlir"


@pytest.mark.parametrize("mebibytes", [200, 300, 400, 430])
def test_address_spaces_that_are_too_small(mebibytes: int, tmp_path: Path) -> None:
    """Libraries are not mapped, arrays not allocated: with a few more bytes the model runs."""
    limit = (mebibytes << 20, mebibytes << 20)
    said = subprocess.run(
        [sys.executable, "-m", "braid.tools.cli", "run", str(MODEL), "--random"],
        capture_output=True,
        text=True,
        env={"BRAID_CACHE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, limit),
    )
    if said.returncode:
        assert said.returncode == 1 and "error: out of memory" in said.stderr, said.stderr
        assert "bug of braid" not in said.stderr and "Traceback" not in said.stderr
    else:
        assert mebibytes > 300
