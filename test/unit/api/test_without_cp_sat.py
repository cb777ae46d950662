"""The compiler without OR-Tools, as `pip install braid-compiler` without extras installs it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

# Runs a program in which OR-Tools cannot be imported.
_BLOCKED = "import sys; sys.modules['ortools'] = None\n"
_COMPILE = (
    _BLOCKED
    + """
import numpy as np
import braid
from braid.solvers.cp_sat import has_cp_sat
assert not has_cp_sat()
model = braid.compile(sys.argv[1])
np.save(sys.argv[2], model(np.load(sys.argv[3])))
"""
)
_OPT = _BLOCKED + "from braid.tools.braid_opt import main; sys.exit(main(sys.argv[1:]))"
_TOO_SMALL = """
func.func @f(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = braid.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %b = braid.exp %a : (tensor<64xf32>) -> tensor<64xf32>
  %c = braid.exp %b : (tensor<64xf32>) -> tensor<64xf32>
  %d = braid.exp %c : (tensor<64xf32>) -> tensor<64xf32>
  %e = braid.add %d, %a : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %e : tensor<64xf32>
}
"""


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_models_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Add", ["r", "c"], ["y"]),
    ]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 8, 8))
    tensor = helper.make_tensor("w", TensorProto.FLOAT, weight.shape, weight.tobytes(), raw=True)
    graph = helper.make_graph(nodes, "net", [value], [result], [tensor])
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    ended = run(_COMPILE, tmp_path / "net.onnx", tmp_path / "y.npy", tmp_path / "x.npy")
    assert ended.returncode == 0, ended.stderr
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)
    )
    c = np.einsum("nchwij,ocij->nohw", windows, weight)
    expected = np.maximum(c, 0) + c
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-4, atol=1e-4)


def test_what_needs_it_says_how_it_is_installed(tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(_TOO_SMALL)
    ended = run(_OPT, file, "--select-rematerialization=budget=512")
    assert ended.returncode == 1
    assert "pass 'select-rematerialization' needs OR-Tools" in ended.stderr
    assert "hint: pip install 'braid-compiler[exact]'" in ended.stderr
    assert "Traceback" not in ended.stderr
