"""Ops of upstream dialects, which only the host computes, on targets with other devices."""

from pathlib import Path

import numpy as np
import pytest

import braid
import braid.targets.machines
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.driver.sources.reading import read_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.errors import BraidError
from braid.universe import make_context

NEST = """
func.func @main(%q: tensor<4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>],
    iterator_types = ["parallel"]} ins(%q : tensor<4xf32>) outs(%o : tensor<4x4xf32>) DEVICE {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
"""


def assigned(device: str, target: str) -> list[str]:
    """Return the remarks of `assign-devices`."""
    attributes = f'attrs = {{braid.device = "{device}"}}' if device else ""
    context = make_context()
    module = read_mlir(context, NEST.replace("DEVICE", attributes), "nest.mlir")
    with collect_remarks() as remarks:
        run_pipeline(context, module, f'assign-devices{{target="{target}"}}')
    return [remark.message for remark in remarks]


def test_an_op_that_braid_does_not_have_runs_on_the_host_with_a_remark() -> None:
    expected = "1 ops run on the host, 'cpu:0', since braid has no ops for them: linalg.generic (1)"
    assert expected in assigned("", "gpu-a100")
    assert expected in assigned("cpu:0", "gpu-a100")
    assert assigned("", "host") == []


def test_a_device_that_would_be_ignored_is_an_error_at_the_op() -> None:
    with pytest.raises(BraidError, match="runs on 'cpu:0'") as caught:
        assigned("gpu:0", "gpu-a100")
    assert caught.value.location is not None and caught.value.location.line == 3
    assert assigned("gpu:0", "gpu-emulated") == []


PRODUCT = """
func.func @main(%a: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = linalg.matmul {braid.device = "gpu:0"} ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
"""


def test_a_matmul_of_linalg_runs_on_the_device_that_it_names() -> None:
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    model = braid.compile(PRODUCT.encode(), target="gpu-emulated")
    np.testing.assert_allclose(model(a, a), a @ a + a, rtol=1e-5)


def test_a_gpu_without_an_architecture_is_a_diagnostic(tmp_path: Path) -> None:
    text = Path(braid.targets.machines.__file__).with_name("gpu-emulated.toml").read_text()
    path = tmp_path / "bare.toml"
    path.write_text(text.replace('machine = "sm_80"\n', ""))
    for jobs in (1, 2):
        with pytest.raises(BraidError, match="without an architecture") as caught:
            braid.compile(PRODUCT.encode(), target=str(path), jobs=jobs)
        assert "[[machine]]" in (caught.value.hint or "")
