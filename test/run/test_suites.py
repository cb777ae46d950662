"""Tests of other projects' suites as models, and the command that counts them."""

import json
from pathlib import Path

import pytest

from benchmarks.conformance.checks import Check, Program, programs_in
from benchmarks.conformance.outcomes import Status
from benchmarks.conformance.suites import main, run_test

STABLEHLO = """
func.func @sums() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi8>
  %1 = stablehlo.add %0, %0 : tensor<2xi8>
  check.expect_eq_const %1, dense<[2,
                                   4]> : tensor<2xi8>
  func.return
}
// -----
func.func @products() {
  %0 = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
  %1 = stablehlo.multiply %0, %0 : tensor<complex<f32>>
  check.expect_almost_eq_const %1, dense<(-3.0, 4.0)> : tensor<complex<f32>>
  check.expect_eq %0, %0 : tensor<complex<f32>>
  func.return
}
// -----
func.func @wrong() {
  %0 = stablehlo.constant dense<1.5> : tensor<f32>
  check.expect_almost_eq_const %0, dense<1.6> : tensor<f32>
  func.return
}
// -----
func.func @true() {
  %0 = stablehlo.constant dense<true> : tensor<i1>
  check.expect_true(%0) : tensor<i1>
  func.return
}
"""
JAX = """
module @jit_main attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main() -> (tensor<2xbf16> {jax.result_info = "", a = "x"}) {
    %0 = call @inputs() : () -> tensor<2xbf16>
    %2 = stablehlo.add %0, %0 : tensor<2xbf16>
    stablehlo.custom_call @check.expect_close(%2, %0) : (tensor<2xbf16>, tensor<2xbf16>) -> ()
    return %2 : tensor<2xbf16>
  }
  func.func private @inputs() -> (tensor<2xbf16> {mhlo.layout_mode = "default"}) {
    %cst = stablehlo.constant dense<0.0> : tensor<2xbf16>
    return %cst : tensor<2xbf16>
  }
}
"""
IREE = """
func.func @linalg() {
  %c = util.unfoldable_constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = util.optimization_barrier %c : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %y = linalg.exp ins(%b : tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  check.expect_almost_eq_const(%y, dense<[2.71828, 7.38906]> : tensor<2xf32>) : tensor<2xf32>
  return
}
"""


def models_of(text: str) -> list[Program]:
    return [test for test in programs_in("file", text) if isinstance(test, Program)]


def test_functions() -> None:
    *tests, wrong = models_of(STABLEHLO)
    assert [test.checks for test in tests] == [
        (Check(True, False),),
        (Check(False, True), Check(True, True)),
    ]
    for test in (*tests, *models_of(JAX), *models_of(IREE)):
        assert run_test(test, "compile").status == Status.PASSED, test.text
    outcome = run_test(wrong, "interpret")
    assert (outcome.status, outcome.reason) == (Status.FAILED, "check 0: differs by up to 0.1")
    assert list(programs_in("file", STABLEHLO))[-1] == ("file:3:true", "it has the check true")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "checkout" / "stablehlo" / "tests" / "interpret"
    place.mkdir(parents=True)
    (place / "sums.mlir").write_text(STABLEHLO)
    kept = tmp_path / "counts.json"
    assert main([str(tmp_path), "--executor", "interpret", "--json", str(kept)]) == 0
    assert "StableHLO's interpreter, interpret: 2 passed, 1 failed, 1 unsupported" in (
        capsys.readouterr().out
    )
    assert main([str(tmp_path), "--json", str(kept)]) == 0
    counts = json.loads(kept.read_text())["StableHLO's interpreter"]
    assert [counts[name]["passed"] for name in ("interpret", "compile")] == [2, 2]
    assert main([str(place)]) == 0
    assert main([str(tmp_path / "nothing")]) == 1
