"""The effects that kernels may have on results: `numerics` of `braid.compile`."""

import numpy as np
import pytest

import braid
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.support.errors import BraidError

WINDOWS = (
    "{strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, "
    "pad_high = array<i64: 1, 1>, groups = 1 : i64}"
)
IMAGE, WEIGHT = "tensor<1x64x28x28xf32>", "tensor<64x64x3x3xf32>"


def model(weight: str) -> bytes:
    """Two convolutions by the same weight, and ops in between."""
    conv = f"{WINDOWS} : ({IMAGE}, {WEIGHT}) -> {IMAGE}"
    argument = f", %w: {WEIGHT}" if not weight else ""
    return f"""
func.func @main(%x: {IMAGE}{argument}) -> {IMAGE} {{
  {weight}
  %y = braid.conv %x, %w {conv}
  %t = braid.tanh %y : ({IMAGE}) -> {IMAGE}
  %z = braid.conv %t, %w {conv}
  func.return %z : {IMAGE}
}}""".encode()


PARAMETER = f'%w = braid.parameter {{key = "w"}} : {WEIGHT}'


@pytest.fixture
def operands() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = ((1, 64, 28, 28), (64, 64, 3, 3))
    x, w = (generator.standard_normal(shape).astype(np.float32) for shape in shapes)
    return x, w / np.float32(24)


@pytest.mark.parametrize(("numerics", "bound"), [("strict", 2e-6), ("fast", 1e-5), (None, 1e-5)])
def test_results(operands, numerics, bound) -> None:
    x, w = operands
    result = braid.compile(model(PARAMETER), parameters={"w": w}, numerics=numerics)(x)
    expected = braid.interpret(model(PARAMETER), parameters={"w": w})(x)
    assert np.abs(result - expected).max() <= bound * np.abs(expected).max()


def test_weights_are_transformed_where_they_are_known(operands) -> None:
    x, w = operands
    known, argument = (emit_model(model(text), "mlir") for text in (PARAMETER, ""))
    strict = emit_model(model(PARAMETER), "mlir", CompileOptions(numerics="strict"))
    assert "winograd" in known and "winograd" not in argument and "winograd" not in strict
    result = braid.compile(model(""))(x, w)
    expected = braid.interpret(model(""))(x, w)
    assert np.abs(result - expected).max() <= 2e-6 * np.abs(expected).max()


def test_inputs_are_never_transformed() -> None:
    weight = WEIGHT.replace(">", ', #braid.layout<"Acdb16a:winograd4">>')
    text = model("").replace(WEIGHT.encode(), weight.encode())
    with pytest.raises(BraidError, match="'input1' of the model is stored in layout 'Acdb16a:win"):
        braid.compile(text)


def test_threads_and_batches(operands) -> None:
    _, w = operands
    text = model(PARAMETER).replace(b"tensor<1x64x28x28", b"tensor<3x64x28x28")
    x = np.random.default_rng(1).standard_normal((3, 64, 28, 28)).astype(np.float32)
    one, two = (braid.compile(text, parameters={"w": w}, threads=n)(x) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("numerics", ["exact", "", "FAST"])
def test_others_are_refused(numerics) -> None:
    with pytest.raises(BraidError, match="expected one of strict, fast"):
        braid.compile(model(PARAMETER), numerics=numerics)
