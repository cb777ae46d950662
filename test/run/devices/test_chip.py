"""Models for a chip: control flow is the host's, all else the streams'."""

from pathlib import Path

import numpy as np
import pytest

import braid
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.frontends.mlir import parse_mlir
from braid.lowering.npu.backend import STREAM
from braid.lowering.npu.lower_block import lower_to_instructions
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.targets.machines.load import load_target
from braid.targets.simulator.instructions import from_text
from braid.targets.simulator.simulate import simulate
from braid.targets.simulator.stream_bytes import from_bytes
from braid.universe import make_context

BRANCHES = """
func.func @main(%x: tensor<4x8xf32> {braid.name = "x"}, %c: tensor<i1> {braid.name = "c"})
    -> (tensor<4x8xf32> {braid.name = "y"}) {
  %0 = braid.neg %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = tensor.extract %c[] : tensor<i1>
  %1 = scf.if %b -> (tensor<4x8xf32>) {
    %2 = braid.exp %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = braid.mul %2, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    scf.yield %3 : tensor<4x8xf32>
  } else {
    scf.yield %0 : tensor<4x8xf32>
  } {braid.branch_probability = 0.25 : f64}
  %y = braid.softmax %1 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
"""
STRAIGHT = """
func.func @main(%x: tensor<256x256xf32> {braid.name = "x"})
    -> (tensor<256x256xf32> {braid.name = "y"}) {
  %0 = braid.matmul %x, %x : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = braid.exp %0 : (tensor<256x256xf32>) -> tensor<256x256xf32>
  func.return %y : tensor<256x256xf32>
}
"""
CHIP = load_target("npu-small").backend("npu")


def module(text: str):
    return parse_mlir(make_context(), text, "model.mlir").module


@pytest.mark.parametrize("condition", [False, True])
def test_control_flow_is_the_hosts(condition: bool, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    model = braid.compile(module(BRANCHES), target="npu-small", jobs=1, order_seconds=0)
    expected = braid.interpret(module(BRANCHES))(x, np.array(condition))
    np.testing.assert_allclose(model(x, np.array(condition)), expected, rtol=1e-5)
    model.save(tmp_path / "m.braid")
    loaded = braid.load(tmp_path / "m.braid")
    np.testing.assert_allclose(loaded(x, np.array(condition)), expected, rtol=1e-5)
    assert loaded.device_seconds() == model.device_seconds()


def test_the_artifact_holds_every_stream_and_its_time(tmp_path: Path) -> None:
    """Before, after and in the branch: the times are the simulator's for each."""
    model = braid.compile(module(BRANCHES), target="npu-small", jobs=1, order_seconds=0)
    model.save(tmp_path / "m.braid")
    artifact = read_artifact(tmp_path / "m.braid")
    codes = zip(artifact.manifest.devices, artifact.device_code, strict=True)
    held = [(spec, from_bytes(code.tobytes())) for spec, code in codes if spec.kind == STREAM]
    assert [stream.ops for _, stream in held] == [("neg#0",), ("softmax#0",), ("exp#0", "mul#1")]
    seconds = [simulate(stream, CHIP).seconds for _, stream in held]
    counts = [1, 1, 0.25]
    assert [spec.seconds for spec, _ in held] == pytest.approx(
        [one * count for one, count in zip(seconds, counts, strict=True)]
    )
    assert model.device_seconds() == {"npu:0": pytest.approx(np.dot(seconds, counts))}
    copied = braid.load(tmp_path / "m.braid")
    copied.save(tmp_path / "copy.braid")
    assert (tmp_path / "copy.braid").read_bytes() == (tmp_path / "m.braid").read_bytes()


def test_without_control_flow_the_stream_is_that_of_the_whole() -> None:
    text = emit_model(
        module(STRAIGHT), "stream-text", CompileOptions(target="npu-small", jobs=1, order_seconds=0)
    )
    assert isinstance(text, str)
    whole = lower_to_instructions(module(STRAIGHT).body.block.first_op.body.block, CHIP)
    assert from_text(text).instructions == whole.instructions


def test_several_streams_are_no_file_of_one() -> None:
    with pytest.raises(BraidError, match="the model has 3 parts at stage 'stream', expected one"):
        emit_model(
            module(BRANCHES), "stream", CompileOptions(target="npu-small", jobs=1, order_seconds=0)
        )


def test_kernels_of_the_host_read_boxes_of_larger_tensors() -> None:
    """A slice lies inside of the concatenation, whose other bytes the loop's next trip changes.

    There are so few channels that no vectors of up to 64 bytes have other layouts of them chosen.
    """
    text = """
    !t = tensor<1x2x6x6xf32>
    !w = tensor<1x4x6x6xf32>
    func.func @main(%x: !t {braid.name = "x"}) -> (!t {braid.name = "y"}) {
      %first = arith.constant 0 : index
      %last = arith.constant 2 : index
      %step = arith.constant 1 : index
      %w = braid.parameter {key = "w"} : tensor<2x2x3x3xf32>
      %y = scf.for %i = %first to %last step %step iter_args(%c = %x) -> (!t) {
        %a = braid.conv %c, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
            pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64,
            braid.device = "cpu:0"} : (!t, tensor<2x2x3x3xf32>) -> !t
        %b = braid.concat %a, %a {dim = 1 : i64, braid.device = "npu:0"} : (!t, !t) -> !w
        %d = braid.slice %b {offsets = array<i64: 0, 1, 0, 0>, sizes = array<i64: 1, 2, 6, 6>,
            strides = array<i64: 1, 1, 1, 1>, braid.device = "npu:0"} : (!w) -> !t
        scf.yield %d : !t
      }
      func.return %y : !t
    }"""
    random = np.random.default_rng(0)
    x = random.normal(size=(1, 2, 6, 6)).astype(np.float32)
    given = {"w": random.normal(size=(2, 2, 3, 3)).astype(np.float32)}
    with collect_remarks() as remarks:
        model = braid.compile(module(text), parameters=given, target="npu-small", jobs=1)
    storage = [remark for remark in remarks if remark.pass_name == "select-storage"]
    assert any(remark.data["spared"] for remark in storage)
    expected = braid.interpret(module(text), parameters=given)(x)
    for _ in range(3):
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-4)
