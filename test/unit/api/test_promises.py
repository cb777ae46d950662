"""Thresholds and budgets never enlarge a memory plan; missing kernel libraries are reported."""

import pytest

import braid
from braid.support.diagnostics import Diagnostic, handle_diagnostics

ROWS = """func.func @main(%a: tensor<2048x1xf32>, %b: tensor<1x2048xf32>) -> tensor<2048x1xf32> {
  %s = braid.add %a, %b : (tensor<2048x1xf32>, tensor<1x2048xf32>) -> tensor<2048x2048xf32>
  %e = braid.exp %s : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %r = braid.reduce %e {kind = "add", dims = array<i64: 1>}
    : (tensor<2048x2048xf32>) -> tensor<2048x1xf32>
  %q = braid.div %e, %r : (tensor<2048x2048xf32>, tensor<2048x1xf32>) -> tensor<2048x2048xf32>
  %y = braid.reduce %q {kind = "maximum", dims = array<i64: 1>}
    : (tensor<2048x2048xf32>) -> tensor<2048x1xf32>
  func.return %y : tensor<2048x1xf32>
}"""
"""Fused by tiles, no large tensor is stored."""

SELECTED = """func.func @main(%x: tensor<60xf32>) -> tensor<60xf32> {
  %z = braid.constant {value = dense<0.0> : tensor<1xf32>} : tensor<1xf32>
  %c = braid.gt %x, %z : (tensor<60xf32>, tensor<1xf32>) -> tensor<60xi1>
  %e = braid.exp %x : (tensor<60xf32>) -> tensor<60xf32>
  %n = braid.sub %e, %z : (tensor<60xf32>, tensor<1xf32>) -> tensor<60xf32>
  %y = braid.select %c, %x, %n : (tensor<60xi1>, tensor<60xf32>, tensor<60xf32>) -> tensor<60xf32>
  func.return %y : tensor<60xf32>
}"""

CHAIN = """func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = braid.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = braid.matmul %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = braid.tanh %1 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = braid.matmul %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = braid.add %3, %0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = braid.mul %4, %2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %5 : tensor<64x64xf32>
}"""


@pytest.mark.parametrize("text", [ROWS, SELECTED, CHAIN], ids=["rows", "selected", "chain"])
def test_thresholds_never_add_memory(text: str) -> None:
    usual = braid.compile(text.encode(), jobs=1).arena_bytes
    for thresholds in (
        "tensor-threshold=100",
        "peak-threshold=16KiB",
        "jump-threshold=64",
        "tensor-threshold=64 jump-threshold=64 mode=all",
        "fusion-rules=default",
    ):
        said: list[Diagnostic] = []
        with handle_diagnostics(said.append):
            model = braid.compile(text.encode(), jobs=1, recompute=thresholds)
        assert model.arena_bytes <= usual, thresholds
        # Either way the figures cover the whole pipeline.
        assert any("thresholds" in each.message and "@main" in each.message for each in said)


def test_tiles_extend_groups_of_recomputed_ops() -> None:
    """An op that is recomputed and grouped with its reader joins a larger group of tiles."""
    usual = braid.compile(ROWS.encode(), jobs=1).arena_bytes
    said: list[Diagnostic] = []
    with handle_diagnostics(said.append):
        model = braid.compile(ROWS.encode(), jobs=1, recompute="peak-threshold=1MiB")
    assert model.arena_bytes == usual < 2**20
    assert not any("left out" in each.message for each in said)


@pytest.mark.parametrize("is_here", [True, False])
def test_a_missing_kernel_library_is_reported(
    is_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = "a library" if is_here else None
    monkeypatch.setattr("braid.driver.lower_source.loaded_library", lambda name: here)
    said: list[Diagnostic] = []
    with handle_diagnostics(said.append):
        braid.compile(SELECTED.encode(), jobs=1, kernels="library")
    assert is_here is not any("braid generates all kernels" in each.message for each in said)
