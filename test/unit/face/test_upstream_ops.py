"""Models with ops of upstream dialects among braid's, compiled and run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import braid

Array = NDArray[Any]
X = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)

MIXED = """
  %t = braid.tanh %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %w = braid.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = linalg.matmul ins(%t, %w : tensor<8x16xf32>, tensor<16x8xf32>)
                     outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = linalg.generic {
    indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%m : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %two : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %c = arith.constant dense<1.0> : tensor<8x8xf32>
  %r = braid.add %g, %c : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = arith.addf %r, %g : tensor<8x8xf32>
"""
REDUCED = """
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.reduce ins(%x : tensor<8x16xf32>) outs(%f : tensor<8xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %c = arith.addf %a, %b : f32
      linalg.yield %c : f32
    }
"""
SLICED = """
  %s = tensor.extract_slice %x[1, 2] [2, 4] [1, 1] : tensor<8x16xf32> to tensor<2x4xf32>
  %e = math.exp %s : tensor<2x4xf32>
  %c = arith.constant dense<1.0> : tensor<2x4xf32>
  %y = arith.addf %e, %c : tensor<2x4xf32>
"""


@pytest.mark.parametrize(
    ("body", "result", "expected"),
    [
        (MIXED, "8x8", 4 * (np.tanh(X) @ X.T).T + 1),
        (REDUCED, "8", X.sum(1)),
        (SLICED, "2x4", np.exp(X[1:3, 2:6]) + 1),
    ],
)
def test_upstream_ops_are_compiled_with_the_rest(
    body: str, result: str, expected: Array, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.mlir"
    type = f"tensor<{result}xf32>"
    path.write_text(
        f"func.func @main(%x: tensor<8x16xf32>) -> {type} {{{body}  func.return %y : {type}\n}}\n"
    )
    actual = braid.compile(path, jobs=1)(X)
    assert isinstance(actual, np.ndarray)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
