"""The pass changes no result: hypothesis makes the chains, some of them no normalization."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import braid
from braid.extend import parse_pipeline

CHAIN = """
func.func @main(%x: tensor<{t}> {{braid.name = "x"}}) -> (tensor<{t}> {{braid.name = "y"}}) {{
  %f = braid.constant {{value = dense<{factor}> : tensor<1x1xf32>}} : tensor<1x1xf32>
  %g = braid.constant {{value = dense<{epsilon}> : tensor<1x1xf32>}} : tensor<1x1xf32>
  %q = braid.mul %x, %x : (tensor<{t}>, tensor<{t}>) -> tensor<{t}>
  %s = braid.reduce %q {{kind = "add", dims = array<i64: 1>}} : (tensor<{t}>) -> tensor<{r}>
  %m = braid.mul %s, %f : (tensor<{r}>, tensor<1x1xf32>) -> tensor<{r}>
  %e = braid.add %m, %g : (tensor<{r}>, tensor<1x1xf32>) -> tensor<{r}>
  %d = braid.sqrt %e : (tensor<{r}>) -> tensor<{r}>
  %y = braid.div %x, %d : (tensor<{t}>, tensor<{r}>) -> tensor<{t}>
  func.return %y : tensor<{t}>
}}
"""


@settings(max_examples=8, deadline=None)
@given(
    rows=st.integers(1, 5),
    length=st.integers(2, 20),
    epsilon=st.sampled_from([0.5, 1.0]),
    mean=st.booleans(),
)
def test_the_meaning_stays(rows: int, length: int, epsilon: float, mean: bool) -> None:
    factor = 1 / length if mean else 0.75  # 0.75 is 1/n for no n: not to be fused.
    types = {"t": f"{rows}x{length}xf32", "r": f"{rows}x1xf32"}
    x = np.random.default_rng(rows * length).standard_normal((rows, length)).astype(np.float32)
    with TemporaryDirectory() as directory:
        path = Path(directory) / "chain.mlir"
        path.write_text(CHAIN.format(factor=factor, epsilon=epsilon, **types))
        passes = parse_pipeline("canonicalize,cse,fuse-rms-norm,default")
        compiled = braid.compile(path, passes=passes)(x)
        assert np.allclose(compiled, braid.interpret(path)(x), rtol=1e-5, atol=1e-6)
