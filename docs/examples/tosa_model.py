"""A model in TOSA, with an op of `linalg` in it, compiled and run."""

import tempfile
from pathlib import Path

import numpy as np

import braid

TEXT = """
func.func @main(%x: tensor<1x4x4x2xf32>) -> tensor<1x4x4x3xf32> {
  %w = "tosa.const"() <{values = dense<0.5> : tensor<3x1x1x2xf32>}> : () -> tensor<3x1x1x2xf32>
  %b = "tosa.const"() <{values = dense<-1.0> : tensor<3xf32>}> : () -> tensor<3xf32>
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %c = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>,
    pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x4x4x2xf32>,
    tensor<3x1x1x2xf32>, tensor<3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x3xf32>
  %r = tosa.clamp %c {min_val = 0.0 : f32, max_val = 6.0 : f32}
    : (tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  %e = tensor.empty() : tensor<1x4x4x3xf32>
  %y = linalg.add ins(%r, %r : tensor<1x4x4x3xf32>, tensor<1x4x4x3xf32>)
                  outs(%e : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  return %y : tensor<1x4x4x3xf32>
}
"""

with tempfile.TemporaryDirectory() as directory:
    path = Path(directory) / "model.mlir"
    path.write_text(TEXT)
    model = braid.compile(path)

x = np.random.default_rng(0).standard_normal((1, 4, 4, 2)).astype(np.float32)
y = model(x)
expected = 2 * np.clip(x.sum(-1, keepdims=True) * 0.5 - 1, 0, 6).repeat(3, axis=-1)
np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
print("the results agree with numpy")
