"""Each call of the driver that a run makes fails once: an error with its name, nothing left."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import braid
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.run.cuda.conftest import TARGET, Driver
from test.unit.runtime.test_run_model import run_model as run_model

MODEL = """
func.func @main(%x: tensor<8x64xf32> {braid.name = "x"}, %w: tensor<64x32xf32> {braid.name = "w"})
    -> (tensor<8x32xf32> {braid.name = "y"}) {
  %0 = braid.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %1 = braid.softmax %0 {dim = 1 : i64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
  func.return %1 : tensor<8x32xf32>
}
"""
# Calls that end something, or are needed for that: their failure cannot be reported.
ENDINGS = re.compile(r"Destroy|Free|Unload|Release|PushCurrent|PopCurrent|EndCapture")


@pytest.fixture
def artifact(driver: Driver, tmp_path: Path) -> Path:
    path = tmp_path / "model.braid"
    braid.compile(
        parse_mlir(make_context(), MODEL, "m.mlir").module, target=TARGET, load=False
    ).save(path)
    return path


def run(program: Path, artifact: Path, driver: Driver, **extra: str) -> tuple[int, str, str]:
    driver.forget()
    result = subprocess.run(
        [program, artifact],
        capture_output=True,
        text=True,
        env={**os.environ, **driver.environment, **extra},
        timeout=60,
    )
    return result.returncode, result.stdout, result.stderr


def test_every_call_may_fail(run_model: Path, artifact: Path, driver: Driver) -> None:
    status, expected, _ = run(run_model, artifact, driver)
    assert status == 0
    driver.check()
    calls = driver.calls()
    numbers = {name: calls.count(name) for name in calls}
    assert len(numbers) > 30
    for name, count in numbers.items():
        if name == "cuEventQuery":  # as often as there is time for
            count = 2
        for number in sorted({1, 2, count // 2, count} & set(range(1, count + 1))):
            what = f"{name}:{number}:999" if number == 1 else f"{name}:{number}:2"
            status, output, error = run(run_model, artifact, driver, STANDIN_FAIL=what)
            if name == "cuPointerGetAttributes" or (ENDINGS.search(name) and status == 0):
                assert (status, output) == (0, expected), what
                continue
            assert status == 1, what
            code = "failed with 999" if number == 1 else "CUDA_ERROR_OUT_OF_MEMORY"
            assert re.search(rf"{name}( failed|: CUDA)", error) and code in error, (what, error)
            # A call that did not end something leaves it: all else is gone.
            assert driver.violations() == [] or ENDINGS.search(name), what


def test_a_kernel_that_fails(run_model: Path, artifact: Path, driver: Driver) -> None:
    """The emulator says why in the log, CUDA that it did."""
    libraries = list(Path(driver.environment["BRAID_CUDA_EMULATED"]).glob("*.so"))
    assert libraries and all(library.stat().st_size for library in libraries)
    status, _, error = run(run_model, artifact, driver, STANDIN_FAIL="cuEventQuery:1:719")
    assert status == 1
    assert "on 'gpu:0': cuEventQuery: CUDA_ERROR_LAUNCH_FAILED" in error


def test_no_driver(run_model: Path, artifact: Path, driver: Driver, tmp_path: Path) -> None:
    missing = run(run_model, artifact, driver, BRAID_CUDA_LIBRARY="")
    assert missing[0] == 1
    assert (
        "there is no CUDA driver (libcuda.so.1) on this machine; the target gpu-emulated"
        in missing[2]
    )
    (tmp_path / "libother.so").write_bytes(b"no library")
    other = run(run_model, artifact, driver, BRAID_CUDA_LIBRARY=str(tmp_path / "libother.so"))
    assert other[0] == 1 and "BRAID_CUDA_LIBRARY names no CUDA driver" in other[2]
    none = run(run_model, artifact, driver, STANDIN_DEVICES="0")
    assert none[0] == 1 and "there are 0 GPUs here" in none[2]
