"""The op against its own `evaluate`, compiled with and without the kernel family."""

from pathlib import Path

import numpy as np
import pytest

import braid

MODULE = """
func.func @main(%x: tensor<{type}> {{braid.name = "x"}}) -> (tensor<{type}> {{braid.name = "y"}}) {{
  %y = toy.rms_norm %x {{epsilon = {epsilon} : f64, braid.name = "y"}}
      : (tensor<{type}>) -> tensor<{type}>
  func.return %y : tensor<{type}>
}}
"""


def _module(directory: Path, type: str, epsilon: str) -> Path:
    path = directory / "norm.mlir"
    path.write_text(MODULE.format(type=type, epsilon=epsilon))
    return path


# f32 is for the family, f64 for the structure; 1 and 40 do not fill a vector.
@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(3, 1), (2, 8, 40), (5, 64)])
def test_compiled_is_what_evaluate_says(
    tmp_path: Path, shape: tuple[int, ...], element_type: str
) -> None:
    path = _module(tmp_path, "x".join(map(str, shape)) + f"x{element_type}", "1.0e-5")
    dtype = {"f32": np.float32, "f64": np.float64}[element_type]
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    expected = braid.interpret(path)(x)
    assert np.abs(braid.compile(path)(x) - expected).max() <= 1e-5 * np.abs(expected).max()


def test_evaluate_is_the_formula(tmp_path: Path) -> None:
    y = braid.interpret(_module(tmp_path, "1x2xf32", "0.5"))(np.array([[3.0, 4.0]], np.float32))
    assert np.allclose(y, np.array([[3.0, 4.0]]) / np.sqrt(12.5 + 0.5))


def test_an_epsilon_below_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(braid.BraidError, match=r"epsilon is -1.0, expected no negative number"):
        braid.compile(_module(tmp_path, "2x4xf32", "-1.0"))
