"""Models that are split over the cores of the host, each a device of its own."""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.threads import statuses_of_threads
from test.unit.runtime.test_run_model import run_model as run_model

TARGET = "host-2"
CHAIN = """
func.func @main(%x: tensor<8x64xf32> {braid.name = "x"}) -> (tensor<8x64xf32> {braid.name = "y"}) {
  %a = braid.exp %x {braid.device = "cpu:1"} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %b = braid.neg %a {braid.device = "cpu:0"} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %c = braid.softmax %b {dim = 1 : i64, braid.device = "cpu:1"} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  func.return %c : tensor<8x64xf32>
}
"""  # noqa: E501


def parse(text: str) -> ModuleOp:
    return parse_mlir(make_context(), text, "chain.mlir").module


def cores_of_devices() -> set[str]:
    """Return the CPUs on which threads of devices may run."""
    cores: set[str] = set()
    for status in statuses_of_threads("braid-device"):
        (allowed,) = re.findall(r"Cpus_allowed_list:\s*(\S+)", status)
        cores.add(allowed)
    return cores


def test_each_core_is_a_device(run_model: Path, tmp_path: Path) -> None:
    model = braid.compile(parse(CHAIN), target=TARGET)
    x = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    expected = braid.interpret(parse(CHAIN))(x)
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)
    assert set(model.launched_seconds()) == {"cpu:0", "cpu:1"}
    usable = sorted(os.sched_getaffinity(0))
    assert {str(cpu) for cpu in usable[:2]} <= cores_of_devices()
    model.save(tmp_path / "m.braid")
    np.testing.assert_array_equal(braid.load(tmp_path / "m.braid")(x), model(x))
    # From C, as from Python, with the same code.
    whole = braid.compile(parse(re.sub(r',? ?braid.device = "cpu:."', "", CHAIN)))
    whole.save(tmp_path / "whole.braid")
    parts, alone = (
        subprocess.run([run_model, path], capture_output=True, text=True, check=True).stdout
        for path in (tmp_path / "m.braid", tmp_path / "whole.braid")
    )
    numbers = [[float(n) for n in re.findall(r"\d+\.\d+(?:e[-+]\d+)?", t)] for t in (parts, alone)]
    assert numbers[0] and numbers[0] == pytest.approx(numbers[1], rel=1e-4)


def test_all_on_the_first_core_launches_nothing() -> None:
    """It is the host: the default device, and not the only other one."""
    x = np.zeros((8, 64), np.float32)
    alone = braid.compile(parse(CHAIN.replace("cpu:1", "cpu:0")), target=TARGET)
    alone(x)
    assert alone.launched_seconds() == {}
