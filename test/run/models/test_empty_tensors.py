"""Models with tensors that have no elements, such as what is cached before the first token."""

import numpy as np

import braid

CACHE = """
func.func @main(%past: tensor<1x2x0x4xf32>, %key: tensor<1x2x3x4xf32>)
    -> (tensor<1x2x3x4xf32>, tensor<1x2x0x4xf32>, tensor<1x2x1x4xf32>) {
  %all = braid.concat %past, %key {dim = 2 : i64}
      : (tensor<1x2x0x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %y = braid.exp %all : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %none = braid.neg %past : (tensor<1x2x0x4xf32>) -> tensor<1x2x0x4xf32>
  %sum = braid.reduce %past {kind = "add", dims = array<i64: 2>}
      : (tensor<1x2x0x4xf32>) -> tensor<1x2x1x4xf32>
  func.return %y, %none, %sum
      : tensor<1x2x3x4xf32>, tensor<1x2x0x4xf32>, tensor<1x2x1x4xf32>
}
"""


def test_an_empty_cache(tmp_path) -> None:
    file = tmp_path / "cache.mlir"
    file.write_text(CACHE)
    past = np.zeros((1, 2, 0, 4), np.float32)
    key = np.random.default_rng(0).standard_normal((1, 2, 3, 4), np.float32)
    compiled, interpreted = (run(file)(past, key) for run in (braid.compile, braid.interpret))
    for actual, expected in zip(compiled, interpreted, strict=True):
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
