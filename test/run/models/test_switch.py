"""A switch runs the region of its case: with carried tensors, counters, and parts on devices."""

import numpy as np
import pytest

import braid
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context

SWITCH = """
!t = tensor<4x8xf32>
func.func @main(%x: !t {braid.name = "x"}, %k: tensor<i64> {braid.name = "k"})
    -> (!t {braid.name = "y"}) {
  %e = tensor.extract %k[] : tensor<i64>
  %n = arith.index_cast %e : i64 to index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (!t) {
    %y = scf.index_switch %i {braid.name = "switch"} -> !t
    case 2 {
      %b = braid.exp %a {braid.name = "two", AT0} : (!t) -> !t
      scf.yield %b : !t
    }
    case 0 {
      %b = braid.neg %a {braid.name = "zero", AT1} : (!t) -> !t
      %c = braid.mul %b, %x {AT1} : (!t, !t) -> !t
      scf.yield %c : !t
    }
    default {
      scf.yield %a : !t
    }
    %z = braid.add %y, %x {AT2} : (!t, !t) -> !t
    scf.yield %z : !t
  }
  func.return %r : !t
}
"""


@pytest.mark.parametrize("devices", [None, ("npu:0", "cpu:0", "npu:0")])
def test_switch(devices: tuple[str, ...] | None) -> None:
    text = SWITCH
    for number, device in enumerate(devices or ("cpu:0",) * 3):
        cluster = f"braid.cluster = {number} : i64, " if devices else ""
        text = text.replace(f"AT{number}", f'{cluster}braid.device = "{device}"')
    module = parse_mlir(make_context(), text, "s.mlir").module
    expected = braid.interpret(module)
    model = braid.compile(module, target="npu-small" if devices else "host", profile=True)
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    for trips in range(6):
        count = np.array(trips, np.int64)
        np.testing.assert_allclose(model(x, count), expected(x, count), rtol=1e-5, atol=1e-6)
    counts = {name: entry.count for name, entry in model.profile().items()}
    assert counts["switch"] == sum(range(6))
    assert any(name.startswith("two") and count == 3 for name, count in counts.items()), counts
    assert any(name.startswith("zero") and count == 5 for name, count in counts.items()), counts
