"""In which types products are made: bf16 models, and `precision` of `braid.compile`."""

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16

import braid
from braid.dialects.braid.dtypes import to_numpy
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.lowering.cpu.kernels.contraction.arithmetic import HalfArithmetic
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.support.errors import BraidError
from braid.tools.cli import main
from test.machines import HOST

needs_instruction = pytest.mark.skipif(
    HalfArithmetic.on(HOST, VectorUnit.of(HOST).lanes) is None,
    reason="this CPU multiplies no pairs of bf16",
)
HALF = to_numpy(bf16)
CONV = (
    "{strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, "
    "pad_high = array<i64: 1, 1>, groups = 1 : i64}"
)


def model(kind: str) -> bytes:
    """Return a convolution whose result is read three times, once by a matmul through a
    transpose."""
    image, small, rows = "2x9x12x12", "2x48x6x6", "2x48x36"
    kernel, weight = "48x9x3x3", "1x36x36"
    text = f"""
func.func @main(%x: <{image}>) -> (<{rows}>, <{small}>) {{
  %k = braid.parameter {{key = "k"}} : <{kernel}>
  %y = braid.conv %x, %k {CONV} : (<{image}>, <{kernel}>) -> <{small}>
  %t = braid.tanh %y : (<{small}>) -> <{small}>
  %r = braid.reshape %t : (<{small}>) -> <{rows}>
  %w = braid.parameter {{key = "w"}} : <{weight}>
  %p = braid.matmul %r, %w : (<{rows}>, <{weight}>) -> <{rows}>
  %s = braid.add %p, %r : (<{rows}>, <{rows}>) -> <{rows}>
  func.return %s, %t : <{rows}>, <{small}>
}}"""
    for shape in (image, small, rows, kernel, weight):
        text = text.replace(f"<{shape}>", f"tensor<{shape}x{kind}>")
    return text.encode()


def numbers(kind: np.dtype) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    generator = np.random.default_rng(0)
    x, k, w = (
        (generator.standard_normal(shape) / divisor).astype(kind)
        for shape, divisor in (((2, 9, 12, 12), 1), ((48, 9, 3, 3), 9), ((1, 36, 36), 6))
    )
    return x, {"k": k, "w": w}


def error(results, references) -> float:
    pairs = (
        (np.asarray(a, np.float64), np.asarray(b, np.float64))
        for a, b in zip(results, references, strict=True)
    )
    return max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)


@pytest.mark.parametrize("cpu", [None, "x86-64-v3"])
def test_models_in_bf16(cpu: str | None) -> None:
    """As close to the same in f64 as the rounding of results and of what products read lets it."""
    x, weights = numbers(HALF)
    exact = {name: value.astype(np.float64) for name, value in weights.items()}
    expected = braid.interpret(model("f64"), parameters=exact)(x.astype(np.float64))
    results = braid.compile(model("bf16"), parameters=weights, cpu=cpu)(x)
    rounded = braid.interpret(model("bf16"), parameters=weights)(x)
    assert error(results, expected) <= 1.5 * error(rounded, expected) < 2e-2


@needs_instruction
def test_products_of_f32_by_request() -> None:
    x, weights = numbers(np.dtype(np.float32))
    expected = braid.interpret(model("f32"), parameters=weights)(x)
    plain, narrow = (
        braid.compile(model("f32"), parameters=weights, precision=precision)(x)
        for precision in (None, "bf16")
    )
    assert error(plain, expected) < 2e-6
    assert 1e-4 < error(narrow, expected) < 1e-2


@needs_instruction
def test_what_products_read_is_stored_in_bf16() -> None:
    text = emit_model(model("f32"), "mlir", CompileOptions(precision="bf16"))
    assert isinstance(text, str)
    assert text.count("accumulator = f32") == 2
    assert "tensor<48x9x3x3xbf16" in text and "tensor<1x36x36xbf16" in text


def test_machines_without_the_instruction_refuse(tmp_path: Path, capsys) -> None:
    with pytest.raises(BraidError, match=r"no instruction for products of bf16.*\n.*znver4"):
        braid.compile(model("f32"), cpu="haswell", precision="bf16", load=False)
    with pytest.raises(BraidError, match=r"and avx512vl for vectors of less"):
        braid.compile(model("f32"), cpu="x86-64-v3,+avx512bf16", precision="bf16", load=False)
    path = tmp_path / "m.mlir"
    path.write_bytes(model("f32"))
    assert main(["compile", str(path), "--cpu=haswell", "--precision=bf16"]) == 1
    assert "no instruction for products of bf16" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


def test_others_are_refused() -> None:
    with pytest.raises(BraidError, match="precision is 'f8', expected one of model, bf16"):
        braid.compile(model("f32"), precision="f8")


@pytest.mark.parametrize("cpu", [None, "x86-64-v3"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_sums_in_f32_wherever_they_are(kind: str, cpu: str | None) -> None:
    """Kernels of upstream's passes, too: neither operand is a weight, and rows are odd."""
    a_type, b_type = f"tensor<3x5x7x{kind}>", f"tensor<3x7x9x{kind}>"
    text = f"""
func.func @main(%a: {a_type}, %b: {b_type}) -> tensor<3x5x9xf32> {{
  %y = braid.matmul %a, %b {{accumulator = f32}} : ({a_type}, {b_type}) -> tensor<3x5x9xf32>
  func.return %y : tensor<3x5x9xf32>
}}""".encode()
    generator = np.random.default_rng(1)
    dtype = HALF if kind == "bf16" else np.float16
    a, b = (generator.standard_normal(s).astype(dtype) for s in ((3, 5, 7), (3, 7, 9)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(braid.compile(text, cpu=cpu)(a, b), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(braid.interpret(text)(a, b), expected, rtol=1e-5, atol=1e-5)
