"""A model that is split over the host and a chip as a C library: all that is needed is in it."""

import subprocess
from pathlib import Path

import numpy as np

import braid
import braid.targets.machines
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.c_programs import build

PROGRAM = Path(__file__).parent / "split_model.c"
MODEL = """
func.func @main(%x: tensor<16x32xf32> {braid.name = "x"})
    -> (tensor<16x32xf32> {braid.name = "y"}) {
  %w = braid.constant {value = dense<0.125> : tensor<32x32xf32>} : tensor<32x32xf32>
  %0 = braid.matmul %x, %w {braid.device = "npu:0", braid.cluster = 0 : i64}
      : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %1 = braid.tanh %0 {braid.device = "cpu:0", braid.cluster = 1 : i64}
      : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %2 = braid.add %1, %x {braid.device = "npu:0", braid.cluster = 2 : i64}
      : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  func.return %2 : tensor<16x32xf32>
}
"""


def build_with(directory: Path, target: str) -> Path:
    """Build the program with the library of the model for this target."""
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    library = directory / "parts.so"
    braid.compile(module, target=target, jobs=1, load=False).save_c_library(library)
    flags = (f"-I{directory}", "-Wl,-rpath,$ORIGIN")
    return build(directory / "program", PROGRAM, library, flags=flags)


def check_results(program: Path, environment: dict[str, str]) -> None:
    x = np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32)
    done = subprocess.run(
        [program], input=x.tobytes(), capture_output=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    expected = np.tanh(x @ np.full((32, 32), 0.125, np.float32)) + x
    actual = np.frombuffer(done.stdout, np.float32).reshape(16, 32)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_a_simulated_chip(tmp_path: Path) -> None:
    check_results(build_with(tmp_path, "npu-small"), {})


def test_a_missing_device(tmp_path: Path) -> None:
    text = Path(braid.targets.machines.__file__).with_name("npu-small.toml").read_text()
    (tmp_path / "far.toml").write_text(text.replace("npu-sim", "far-away"))
    program = build_with(tmp_path, str(tmp_path / "far.toml"))
    done = subprocess.run([program], input=bytes(2048), capture_output=True, check=False, env={})
    assert done.returncode == 1
    assert b"device 'npu:0', which is missing: there is no device plugin 'far-away'" in done.stderr
    assert b"BRAID_EMULATE=1" in done.stderr
    check_results(program, {"BRAID_EMULATE": "1"})
