"""No code depends on the name of the CPU backend: only targets have it."""

import os
import subprocess
import sys
from pathlib import Path

MACHINES = Path(__file__).parents[2] / "targets/machines"
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import braid
import braid.targets.machines.load as load
from braid.driver.read_source import read_source
from braid.universe import make_context

load._DIRECTORY = Path(sys.argv[1])
assert [device.name for device in load.load_target().devices] == ["zzz:0"]
x = np.linspace(-1, 1, 512, dtype=np.float32).reshape(16, 32)
w = np.linspace(1, 2, 256, dtype=np.float32).reshape(32, 8)
for target in ("host", "npu-small"):
    y = braid.compile(sys.argv[2], target=target, jobs=1)(x, w)
    assert np.allclose(y, -(x @ w), rtol=1e-5, atol=1e-5)
"""
MODEL = """
func.func @main(%x: tensor<16x32xf32>, %w: tensor<32x8xf32>) -> tensor<16x8xf32> {
  %0 = braid.matmul %x, %w : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  %1 = braid.neg %0 : (tensor<16x8xf32>) -> tensor<16x8xf32>
  func.return %1 : tensor<16x8xf32>
}
"""


def test_the_backend_of_cpus_may_have_any_name(tmp_path: Path) -> None:
    package, targets = tmp_path / "zzz-1.0.dist-info", tmp_path / "targets"
    package.mkdir()
    targets.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: zzz\nVersion: 1.0\n")
    backend = "[braid.backends]\nzzz = braid.lowering.cpu.backend:CpuBackend\n"
    (package / "entry_points.txt").write_text(backend)
    for file in MACHINES.glob("*.toml"):
        text = file.read_text().replace('"cpu"', '"zzz"').replace('"cpu:0"', '"zzz:0"')
        (targets / file.name).write_text(text)
    (tmp_path / "model.mlir").write_text(MODEL)
    command = [sys.executable, "-c", PROGRAM, str(targets), str(tmp_path / "model.mlir")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
