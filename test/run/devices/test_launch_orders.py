"""Launches in the order that keeps devices busy, measured on devices that take their time."""

import time

import numpy as np
import pytest

import braid
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.run.devices.test_emulated_backends import DEVICES, EXP
from test.run.devices.test_emulated_backends import board as board

TENSOR = "tensor<65536xf32>"
CROSSED = f"""
func.func @main(%x: {TENSOR}, %y: {TENSOR}) -> ({TENSOR}, {TENSOR}) {{
  %a = braid.exp %x {{braid.device = "{DEVICES[0]}"}} : ({TENSOR}) -> {TENSOR}
  %p = braid.exp %a {{braid.device = "{DEVICES[1]}"}} : ({TENSOR}) -> {TENSOR}
  %b = braid.exp %y {{braid.device = "{DEVICES[1]}"}} : ({TENSOR}) -> {TENSOR}
  %q = braid.exp %b {{braid.device = "{DEVICES[0]}"}} : ({TENSOR}) -> {TENSOR}
  func.return %p, %q : {TENSOR}, {TENSOR}
}}
"""
"""In program order, the second device waits for the first although it could compute `b`."""


def test_two_devices_work_side_by_side(board: str) -> None:
    module = parse_mlir(make_context(), CROSSED, "crossed.mlir").module
    with collect_remarks() as remarks:
        model = braid.compile(module, target=board, emulate=True)
    (found,) = [r.data for r in remarks if r.pass_name == "search-order" and "sources" in r.data]
    assert found["before"] == pytest.approx(4 * EXP, rel=2e-3)
    assert found["cost"] == pytest.approx(2 * EXP, rel=2e-3)
    assert found["cost"] == pytest.approx(found["lower_bound"], rel=2e-3)
    x, y = np.random.default_rng(0).uniform(-2, 1, (2, 65536)).astype(np.float32)
    for _ in range(30):  # the host may be busy with something else
        begin = time.perf_counter()
        p, q = model(x, y)
        taken = time.perf_counter() - begin
        np.testing.assert_allclose(p, np.exp(np.exp(x)), rtol=1e-5)
        np.testing.assert_allclose(q, np.exp(np.exp(y)), rtol=1e-5)
        assert taken >= 2 * EXP
        if taken < 3.5 * EXP:
            return
    pytest.fail(f"{taken:.3f} s, which is at least the time of one device after the other")
