"""`stablehlo.rng` draws as its distribution says, the same at each run, other ones for each op."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import braid

Array = NDArray[Any]


def text_of(type: str, distribution: str, first: str, second: str) -> str:
    """Two draws of the same numbers."""
    result = f"tensor<100x200x{type}>"
    draw = f"""stablehlo.rng %a, %b, %s, distribution = {distribution}
    : (tensor<{type}>, tensor<{type}>, tensor<2xi64>) -> {result}"""
    return f"""func.func @main() -> ({result}, {result}) {{
  %a = stablehlo.constant dense<{first}> : tensor<{type}>
  %b = stablehlo.constant dense<{second}> : tensor<{type}>
  %s = stablehlo.constant dense<[100, 200]> : tensor<2xi64>
  %y = {draw}
  %z = {draw}
  return %y, %z : {result}, {result}
}}"""


def drawn(*arguments: str) -> tuple[Array, Array]:
    model = braid.compile(text_of(*arguments).encode(), jobs=1)
    (y, z), (again, _) = model(), model()
    np.testing.assert_array_equal(y, again)
    return y.astype(np.float64), z.astype(np.float64)


@pytest.mark.parametrize("type", ["f64", "f32", "f16", "bf16"])
def test_floats(type: str) -> None:
    y, z = drawn(type, "UNIFORM", "-4.0", "4.0")
    assert -4 <= y.min() < -3.9 and 3.9 < y.max() <= 4
    assert abs(y.mean()) < 0.1 and abs(y.std() - 8 / 12**0.5) < 0.05
    assert abs(np.corrcoef(y.ravel(), z.ravel())[0, 1]) < 0.03


@pytest.mark.parametrize("type", ["f64", "f32", "f16"])
def test_normal_numbers(type: str) -> None:
    y, z = drawn(type, "NORMAL", "1.0", "2.0")
    within = [np.mean(np.abs(y - 1) < 2 * sigma) for sigma in (1, 2, 3)]
    np.testing.assert_allclose(within, [0.6827, 0.9545, 0.9973], atol=0.02)
    assert abs(np.corrcoef(y.ravel(), z.ravel())[0, 1]) < 0.03


@pytest.mark.parametrize(
    ("type", "first", "end"), [("i8", -100, 100), ("ui8", 3, 250), ("i64", -5, 6), ("i32", 4, 4)]
)
def test_integers(type: str, first: int, end: int) -> None:
    """All are drawn, about as often as each other; where there are none, the first is."""
    values, counts = np.unique(drawn(type, "UNIFORM", str(first), str(end))[0], return_counts=True)
    np.testing.assert_array_equal(values, np.arange(first, max(end, first + 1)))
    expected = 20000 / len(values)
    assert np.abs(counts - expected).max() < 5 * expected**0.5


def test_a_loop_would_draw_the_same_numbers() -> None:
    text = """func.func @main(%n: tensor<i32>) -> tensor<f32> {
  %a = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.constant dense<1.0> : tensor<f32>
  %s = stablehlo.constant dense<> : tensor<0xi64>
  %y = "stablehlo.case"(%n) ({
    %r = stablehlo.rng %a, %b, %s, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
    stablehlo.return %r : tensor<f32>
  }, {
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %y : tensor<f32>
}"""
    with pytest.raises(braid.BraidError, match="the same numbers in every iteration"):
        braid.compile(text.encode())
