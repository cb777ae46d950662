"""Ops after a product that become post-ops of oneDNN, and when these are equivalent."""

import numpy as np
import pytest

from braid.dialects.braid.regions import FusedOp
from braid.frontends.mlir import parse_mlir
from braid.lowering.cpu.library.groups import match_library
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context


def group(op: str, number: float):
    """Return a product of two operands, divided by a number or times its sigmoid."""
    ops = {
        "div": f"""
  %k = braid.constant {{value = dense<{number}> : tensor<1x1xf32>}} : tensor<1x1xf32>
  %z = braid.div %y, %k : (tensor<64x64xf32>, tensor<1x1xf32>) -> tensor<64x64xf32>""",
        "swish": """
  %one = braid.constant {value = dense<1.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %n = braid.neg %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = braid.exp %n : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = braid.add %e, %one : (tensor<64x64xf32>, tensor<1x1xf32>) -> tensor<64x64xf32>
  %r = braid.reciprocal %s : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = braid.mul %y, %r : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>""",
    }
    text = f"""
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {{
  %y = braid.matmul %a, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>{ops[op]}
  func.return %z : tensor<64x64xf32>
}}"""
    context = make_context()
    module = parse_mlir(context, text, "m.mlir").module
    run_pipeline(context, module, "select-fusion,apply-fusion")
    return next(op for op in module.walk() if isinstance(op, FusedOp))


@pytest.mark.parametrize(
    ("number", "fits"), [(4.0, True), (-0.125, True), (3.0, False), (2.0**-127, False)]
)
def test_quotients_are_products_only_by_powers_of_two(number: float, fits: bool) -> None:
    assert (match_library(group("div", float(np.float32(number)))) is not None) == fits


@pytest.mark.parametrize("is_strict", [False, True])
def test_functions_that_are_nearly_the_same_are_not_strict(is_strict: bool) -> None:
    found = match_library(group("swish", 0), is_strict=is_strict)
    assert (found is None) == is_strict
