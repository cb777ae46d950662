"""The C example runs an artifact without Python."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from braid.runtime.native_abi import find_library

HEADERS = Path(__file__).parents[3] / "runtime" / "native" / "include"
EXAMPLE = HEADERS.parent / "examples" / "run_model.c"


@pytest.fixture(scope="module")
def run_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    program = tmp_path_factory.mktemp("example") / "run_model"
    library = find_library()
    link = [library, f"-Wl,-rpath,{library.parent}", "-lm"]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}"]
    subprocess.run([compiler, *flags, EXAMPLE, *link, "-o", program], check=True)
    return program


@pytest.mark.parametrize("threads", ["1", "2"])
def test_norms(run_model: Path, artifact_path: Path, threads: str) -> None:
    x = (np.arange(1000 * 8) % 17 / 16.0).reshape(1000, 8)
    y = 3.0 * x + np.arange(8)
    command = [run_model, artifact_path, threads]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    names, norms = zip(*(line.split(": ") for line in result.stdout.splitlines()), strict=True)
    assert names == ("y", "total")
    np.testing.assert_allclose([float(n) for n in norms], [np.linalg.norm(y), y.sum()], rtol=1e-5)


def test_a_missing_file(run_model: Path) -> None:
    result = subprocess.run([run_model, "none.braid"], capture_output=True, text=True)
    assert result.returncode == 1
    assert "cannot open 'none.braid'" in result.stderr
