"""What `convert-stablehlo-to-braid` makes of each op computes what StableHLO's interpreter does."""

from collections.abc import Callable
from math import erf
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.analysis.structure.verification import verify_module
from braid.dialects.stablehlo import StablehloOp
from braid.driver.sources.reading import read_mlir
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.mlir_bindings import package
from braid.universe import make_context
from test.unit.passes.stablehlo.case import Array, inputs_of, module_of, reference
from test.unit.passes.stablehlo.cases import CASES
from test.unit.passes.stablehlo.corner_cases import CORNER_CASES
from test.unit.passes.stablehlo.models import ATTENTION, CONVOLUTIONS
from test.unit.passes.stablehlo.placed_cases import PLACED_CASES

pytest.importorskip(f"{package()}._mlir_libs._stablehlo")


def converted(text: str) -> ModuleOp:
    """Return the module after the conversion."""
    context = make_context()
    module = read_mlir(context, text, "stablehlo.mlir")
    run_pipeline(context, module, "split-complex-numbers,convert-stablehlo-to-braid")
    verify_module(module)
    assert not any(isinstance(op, StablehloOp) for op in module.walk())
    return module


ALL_CASES = CASES | CORNER_CASES | PLACED_CASES


@pytest.mark.parametrize("lines", ALL_CASES.values(), ids=ALL_CASES.keys())
def test_an_op_means_the_same(lines: str) -> None:
    text = module_of(lines)
    inputs = inputs_of(text)
    expected = reference(text, inputs)
    actual = braid.interpret(converted(text))(*inputs)
    assert isinstance(actual, np.ndarray)
    assert actual.shape == expected.shape
    if actual.dtype == np.bool_:
        expected = expected != 0
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


def test_what_its_interpreter_does_not_have() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> tensor<2x3xf32> {
  %v = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{epsilon = 1.0e-3 : f32,
    feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>,
    tensor<3xf32>) -> tensor<2x3xf32>
  %e = chlo.erf %v : tensor<2x3xf32> -> tensor<2x3xf32>
  %y = stablehlo.custom_call @Sharding(%e) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}"""
    x, s = np.float32([[1, 2, 3], [-1, 0, 1]]), np.float32([0.5, 1, 2])
    normal = (x - s) / np.sqrt(s + 1e-3) * s + s
    expected = np.vectorize(erf)(normal)
    np.testing.assert_allclose(braid.interpret(converted(text))(x, s), expected, rtol=1e-5)


CHLO: dict[str, Callable[[Array], Array]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "erf": np.vectorize(erf),
    "sinh": np.sinh,
    "square": np.square,
    "tan": np.tan,
}


@pytest.mark.parametrize("name", CHLO)
def test_an_op_of_chlo_means_the_same(name: str) -> None:
    text = module_of(f"%y = chlo.{name} %a: tensor<4xf32> : tensor<4xf32> -> tensor<4xf32>")
    x = np.float32([1.5, 2, 3, 4]) if name == "acosh" else np.float32([0.1, -0.3, 0.5, 0.9])
    actual = braid.interpret(converted(text))(x)
    np.testing.assert_allclose(actual, CHLO[name](x), rtol=1e-6)


@pytest.mark.parametrize(("name", "expected"), [("pos", np.isposinf), ("neg", np.isneginf)])
def test_infinities_of_chlo(name: str, expected: Callable[[Array], Array]) -> None:
    text = module_of(f"%y = chlo.is_{name}_inf %a: tensor<4xf32> : tensor<4xf32> -> tensor<4xi1>")
    x = np.float32([np.inf, -np.inf, np.nan, 3e38])
    for run in (braid.interpret, braid.compile):
        np.testing.assert_array_equal(run(converted(text))(x), expected(x))


def test_functions_are_inlined_and_files_compiled(tmp_path: Path) -> None:
    for text in (CONVOLUTIONS, ATTENTION):
        (tmp_path / "model.mlir").write_text(text)
        inputs = [0.5 * array if array.dtype == np.float32 else array for array in inputs_of(text)]
        expected = reference(text, inputs)
        actual = braid.compile(tmp_path / "model.mlir")(*inputs)
        assert isinstance(actual, np.ndarray)
        assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max()


def test_errors_name_the_op_and_its_place() -> None:
    context = make_context()
    with pytest.raises(braid.BraidError, match="expected the generic form"):
        parse_mlir(context, module_of(CASES["abs"]), "abs.mlir")
    with pytest.raises(braid.BraidError, match=r"wrong.mlir:2:2: .*custom op 'stablehlo.no'"):
        read_mlir(context, "func.func @f() {\n stablehlo.no\n return\n}", "wrong.mlir")
    unknown = (
        '%y = "stablehlo.collective_broadcast"(%a: tensor<4xf32>) '
        "<{replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4xf32>) -> tensor<4xf32>"
    )
    nothing = r"unknown.mlir:2:6: .*the op stablehlo.collective_broadcast is not supported"
    with pytest.raises(braid.BraidError, match=nothing):
        read_mlir(context, module_of(unknown), "unknown.mlir")
