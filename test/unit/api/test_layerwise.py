"""Outputs of every op, and how far two runs are apart."""

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import pytest

from braid.analysis.structure.verification import verify_module
from braid.driver.sources.signature import signature_of
from braid.frontends.mlir import parse_mlir
from braid.frontends.onnx import import_onnx
from braid.interpreted import interpret
from braid.tools.comparison.layerwise import differences, expose_results, relative_error
from braid.tools.comparison.nested_results import has_run
from braid.universe import make_context


def test_expose_results(affine: onnx.ModelProto, x: np.ndarray) -> None:
    imported = import_onnx(affine)
    order = expose_results(imported.module, {"xw", "sum", "y"})
    assert order == ("xw", "sum", "y", "total")
    names = [spec.name for spec in signature_of(imported.module)[1]]
    assert names == ["y", "total", "xw", "sum"]
    outputs = interpret(imported.module, parameters=imported.parameters).run_named({"x": x})
    np.testing.assert_array_equal(np.maximum(outputs["sum"], 0), outputs["y"])


NESTED = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.constant true
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %y = scf.for %i = %zero to %three step %one iter_args(%a = %x) -> (tensor<2xf32>) {
    %b = scf.if %c -> (tensor<2xf32>) {
      %n = braid.neg %a {braid.name = "neg"} : (tensor<2xf32>) -> tensor<2xf32>
      scf.yield %n : tensor<2xf32>
    } else {
      %e = braid.exp %a {braid.name = "exp"} : (tensor<2xf32>) -> tensor<2xf32>
      scf.yield %e : tensor<2xf32>
    }
    %s = braid.add %b, %x {braid.name = "sum"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    scf.yield %s : tensor<2xf32>
  }
  %w = scf.while (%v = %y) : (tensor<2xf32>) -> tensor<2xf32> {
    %none = arith.constant false
    scf.condition(%none) %v : tensor<2xf32>
  } do {
  ^bb0(%v: tensor<2xf32>):
    %l = braid.log %v {braid.name = "log"} : (tensor<2xf32>) -> tensor<2xf32>
    scf.yield %l : tensor<2xf32>
  }
  return %w : tensor<2xf32>
}
"""


def test_results_inside_control_flow() -> None:
    """The last iteration counts; what did not run in it is known not to have run."""
    module = parse_mlir(make_context(), NESTED, "m.mlir").module
    order = expose_results(module)
    verify_module(module)
    assert order == ("neg", "exp", "sum", "log", "output0")
    x = np.array([1.0, 3.0], np.float32)
    outputs = interpret(module).run_named({"input0": x})
    np.testing.assert_array_equal(outputs["neg"], -x)
    np.testing.assert_array_equal(outputs["sum"], [0.0, 0.0])
    np.testing.assert_array_equal(outputs["output0"], [0.0, 0.0])
    assert {name for name in order if has_run(outputs[name])} == {"neg", "sum", "output0"}


def test_all_named_ops(affine: onnx.ModelProto) -> None:
    imported = import_onnx(affine)
    assert {"xw", "sum", "y", "total"} <= set(expose_results(imported.module))


@pytest.mark.parametrize(
    ("actual", "reference", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, -2.0], 4.5 / 2),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [2.0, 1.0], np.inf),
        ([1.0, 1.0], [np.inf, 1.0], np.inf),
        ([1e-9, 0.0], [0.0, 0.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
        ([1, 2], [1, 2], 0.0),
        ([1, 2], [1, 3], np.inf),
        ([True], [False], np.inf),
    ],
)
def test_relative_error(actual: list[float], reference: list[float], error: float) -> None:
    assert relative_error(np.array(actual), np.array(reference)) == error


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_narrow_floats_are_compared_as_floats(dtype: npt.DTypeLike) -> None:
    actual, reference = np.array([1.0, 8.0], dtype), np.array([2.0, 8.0], dtype)
    assert relative_error(actual, reference) == 0.125


def test_narrow_integers_are_compared_exactly() -> None:
    actual, reference = np.array([1, 7], ml_dtypes.int4), np.array([2, 7], ml_dtypes.int4)
    assert relative_error(actual, reference) == float("inf")


def test_differences_keep_the_order() -> None:
    a = {"p": np.ones(2), "q": np.zeros(2), "r": np.ones(1)}
    b = {"q": np.ones(2), "p": np.ones(2)}
    found = differences(["p", "q", "r"], a, b)
    assert [(d.name, d.error) for d in found] == [("p", 0.0), ("q", 1.0)]
