"""What `braid explain` says of devices, against arithmetic by hand."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from braid.dialects.braid import Braid
from braid.tools.cli import main

TEXT = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = braid.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = braid.exp %a {braid.name = "b"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = braid.matmul %b, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %c : tensor<64x64xf32>
}
"""

BYTES = 64 * 64 * 4
TRANSFER = 10e-6 + BYTES / 8.5e9
"""Seconds of a tensor on a link of npu-small."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT.replace(' {braid.port = "x"}', ""))
    return path


def test_clusters_transfers_and_the_trace(model: Path, tmp_path: Path, capsys) -> None:
    trace, page = tmp_path / "t.json", tmp_path / "p.html"
    options = ["--target", "npu-small", "--pin", "b=cpu:0", "--devices"]
    files = ["--trace", str(trace), "--html", str(page)]
    assert main(["explain", str(model), *options, *files]) == 0
    shown = capsys.readouterr().out
    assert "3 clusters on 2 devices" in shown and "bottleneck" in shown
    events = json.loads(trace.read_text())["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    spans = sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"])
    assert [lanes[span["tid"]] for span in spans] == ["npu:0", "cpu:0", "npu:0"]
    for before, after in pairwise(spans):
        assert after["ts"] == pytest.approx(before["ts"] + before["dur"])
    assert [span["args"]["received"] for span in spans] == [BYTES, BYTES, BYTES]
    assert all(spans[n]["dur"] >= 2e6 * TRANSFER for n in (0, 2))
    assert "npu:0" in page.read_text()


def test_each_kernel_says_why_it_runs_there(tmp_path: Path, capsys) -> None:
    path = tmp_path / "named.mlir"
    text = TEXT.replace("matmul %x, %x :", 'matmul %x, %x {braid.name = "a"} :')
    place = '{braid.name = "c", braid.device = "cpu:0"}'
    path.write_text(text.replace("matmul %b, %b :", f"matmul %b, %b {place} :"))
    options = ["--target", "npu-small", "--pin", "b=cpu:0", "--json"]
    assert main(["explain", str(path), *options]) == 0
    page = json.loads(capsys.readouterr().out)["result"]["page"]
    why = {name: kernel for kernel in page["kernels"] for name in kernel["ops"]}
    assert why["a"]["device"] == "npu:0" and "'npu' is 1, 'cpu' is" in why["a"]["placed"]
    assert "pinned there by 'b=cpu:0'" in why["b"]["placed"]
    assert "the model says so (braid.device)" in why["c"]["placed"]
    assert main(["explain", str(path), *options[-1:], "--target", "host"]) == 0
    page = json.loads(capsys.readouterr().out)["result"]["page"]
    assert [kernel["placed"] for kernel in page["kernels"]] == [""] * len(page["kernels"])


def test_devices_in_turn_and_measured_times(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "split.mlir"
    place = 'braid.device = "cpu:0", braid.replicas = ["cpu:1"]'
    text = TEXT.replace("matmul %x, %x :", f"matmul %x, %x {{{place}}} :")
    path.write_text(text.replace("matmul %b, %b :", 'matmul %b, %b {braid.device = "cpu:1"} :'))
    options = ["explain", str(path), "--target", "host-2"]
    assert main([*options, "--devices", "--measure", "5"]) == 0
    shown = capsys.readouterr().out
    assert "3 clusters on 2 devices" in shown and "measured" in shown
    (row,) = (
        line for line in shown.splitlines() if "cpu:0" in line and "cpu:1" in line and "│" in line
    )
    assert float(row.split("│")[6].split()[0]) > 0
    assert "In a stream: 3 stages on cpu:0, cpu:1" in shown and "channels of" in shown
    assert main([*options, "--devices"]) == 0
    assert "measured" not in capsys.readouterr().out
    assert main([*options, "--measure", "5"]) == 1
    assert "--measure is for --devices" in capsys.readouterr().err


def test_one_device_has_no_clusters(model: Path, capsys) -> None:
    assert main(["explain", str(model), "--devices"]) == 1
    assert "the model runs on one device" in capsys.readouterr().err


def test_a_partition_needs_devices(model: Path, capsys) -> None:
    assert main(["explain", str(model), "--partition", "latency"]) == 1
    assert "target 'host' has one device" in capsys.readouterr().err
    assert main(["explain", str(model), "--target", "npu-small", "--partition", "fast"]) == 1
    assert "expected one of priority, latency, throughput" in capsys.readouterr().err


def test_verification_names_the_wrong_cluster(model: Path, capsys, monkeypatch) -> None:
    options = ["--per-cluster", "--target", "npu-small", "--pin", "b=cpu:0"]
    assert main(["verify", str(model), *options]) == 0
    assert "all 3 values that leave clusters agree with the interpreter" in capsys.readouterr().out
    (exp,) = (op for op in Braid.operations if op.name == "braid.exp")
    monkeypatch.setattr(exp, "evaluate", lambda self, x: (x,))
    assert main(["verify", str(model), *options]) == 1
    shown = capsys.readouterr().out
    assert "first value that differs from the interpreter: 'b' of cluster 1 on cpu:0" in shown
    assert "1 of 3 values that leave clusters differ" in shown
    assert main(["verify", str(model), "--per-cluster"]) == 1
    assert "the model runs on one device of target 'host'" in capsys.readouterr().err
    assert main(["verify", str(model), "--pin", "b=cpu:0"]) == 1
    assert "--partition and --pin are for --per-cluster" in capsys.readouterr().err


HALF = Path(__file__).parents[2] / "passes/partition/Inputs/half.toml"
IN_HALF = """
func.func @main(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %a = braid.tanh %x {braid.name = "a"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %b = braid.matmul %a, %w {braid.name = "b"} :
    (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = braid.sin %b {braid.name = "c"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %c : tensor<16x16xf32>
}
"""


@pytest.mark.parametrize("strategy", ["priority", "throughput"])
def test_a_cluster_in_another_type_may_differ_by_what_it_declares(
    strategy: str, tmp_path: Path, capsys
) -> None:
    model, target = tmp_path / "m.mlir", tmp_path / "half.toml"
    model.write_text(IN_HALF)
    target.write_text(HALF.read_text())
    options = ["--per-cluster", "--target", str(target), "--pin", "b=gpu:0"]
    options += ["--pin", "c=cpu:0", "--partition", strategy, "--tolerance", "1e-6"]
    assert main(["verify", str(model), *options]) == 0
    shown = capsys.readouterr().out
    assert "within 1e-06, or what clusters declare, 0.01 at most" in shown
    assert "'b' of cluster 1 on gpu:0" in shown  # the largest error is of the one in f16
    target.write_text(HALF.read_text().replace("tolerance = 1e-2", "tolerance = 2e-6"))
    assert main(["verify", str(model), *options]) == 1
    shown = capsys.readouterr().out
    assert "first value that differs from the interpreter: 'b' of cluster 1 on gpu:0" in shown
    assert "1 of 3 values" in shown  # what reads it is judged by what it read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("computes = 'f16'", "stands without a tolerance"),
        ("computes = 'i8', tolerance = 1e-2", "expected one of f16, bf16, f32"),
        ("computes = 16, tolerance = 1e-2", "'computes'"),
        ("tolerance = 0", "expected a positive number"),
        ("tolerance = -1e-3", "expected no negative number"),
        ("tolerance = nan", "expected"),
    ],
)
def test_what_an_entry_computes_in(given: str, message: str, tmp_path: Path, capsys) -> None:
    model, target = tmp_path / "m.mlir", tmp_path / "half.toml"
    model.write_text(IN_HALF)
    text = HALF.read_text()
    (old,) = (line for line in text.splitlines() if line.startswith("abs"))
    target.write_text(text.replace(old, f"abs = {{ priority = 1, {given} }}"))
    assert main(["explain", str(model), "--devices", "--target", str(target)]) == 1
    assert message in capsys.readouterr().err


UPSTREAM = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = braid.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = math.cbrt %a : tensor<64x64xf32>
  %c = braid.matmul %b, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %c : tensor<64x64xf32>
}
"""
ALONE = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %b = math.cbrt %x : tensor<64x64xf32>
  func.return %b : tensor<64x64xf32>
}
"""


@pytest.mark.parametrize("text", [UPSTREAM, ALONE])
def test_what_only_the_host_runs_has_a_row_with_the_reason(
    text: str, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path, page = tmp_path / "model.mlir", tmp_path / "p.html"
    path.write_text(text)
    options = ["explain", str(path), "--devices", "--html", str(page)]
    assert main([*options, "--target", "gpu-h100"]) == 0
    why = "braid has no ops for them: math.cbrt (1)"
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "│ host" in line)
    assert [cell.strip() for cell in row.split("│")[1:5]] == ["host", "cpu:0", "1", why]
    drawn = page.read_text()
    assert f'["host","cpu:0","1","{why}"' in drawn
    if text is UPSTREAM:
        assert f'"why":"{why}"' in drawn
    assert main([*options, "--target", "host"]) == 1
