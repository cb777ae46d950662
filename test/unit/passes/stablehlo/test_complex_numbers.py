"""Complex numbers and Fourier transforms in StableHLO compute what numpy does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import braid
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context

Array = NDArray[Any]
_C = "tensor<3x4xcomplex<f32>>"
_F = "tensor<3x4xf32>"


def interpreted(text: str) -> Any:
    """Return what interprets a module in generic form."""
    context = make_context()
    module = parse_mlir(context, text, "model.mlir").module
    run_pipeline(context, module, "split-complex-numbers,convert-stablehlo-to-braid")
    return braid.interpret(module)


def of_numbers(lines: str, result: str = _C) -> str:
    """Return a function of parts of `%z` and `%w` that returns the parts of `%y`."""
    part = result.replace("complex<f32>", "f32")
    return f"""func.func @main(%a: {_F}, %b: {_F}, %c: {_F}, %d: {_F}) -> ({part}, {part}) {{
  %z = "stablehlo.complex"(%a, %b) : ({_F}, {_F}) -> {_C}
  %w = "stablehlo.complex"(%c, %d) : ({_F}, {_F}) -> {_C}
  {lines}
  %r = "stablehlo.real"(%y) : ({result}) -> {part}
  %i = "stablehlo.imag"(%y) : ({result}) -> {part}
  func.return %r, %i : {part}, {part}
}}"""


def _unary(name: str) -> str:
    return f'%y = "{name}"(%z) : ({_C}) -> {_C}'


def _binary(name: str) -> str:
    return f'%y = "{name}"(%z, %w) : ({_C}, {_C}) -> {_C}'


SPECIAL = np.array([complex("inf-infj"), complex("1+nanj"), complex("nan"), 2j])

OPS: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "add": (_binary("stablehlo.add"), np.add),
    "subtract": (_binary("stablehlo.subtract"), np.subtract),
    "multiply": (_binary("stablehlo.multiply"), np.multiply),
    "divide": (_binary("stablehlo.divide"), np.divide),
    "power": (_binary("stablehlo.power"), np.power),
    "maximum": (_binary("stablehlo.maximum"), np.maximum),
    "minimum": (_binary("stablehlo.minimum"), np.minimum),
    "atan2": (
        _binary("stablehlo.atan2"),
        lambda z, w: -1j * np.log((w + 1j * z) / np.sqrt(w * w + z * z)),
    ),
    "cbrt": (_unary("stablehlo.cbrt"), lambda z, w: z ** (1 / 3)),
    "negate": (_unary("stablehlo.negate"), lambda z, w: -z),
    "conj": (_unary("chlo.conj"), lambda z, w: z.conj()),
    "exponential": (_unary("stablehlo.exponential"), lambda z, w: np.exp(z)),
    "log": (_unary("stablehlo.log"), lambda z, w: np.log(z)),
    "sqrt": (_unary("stablehlo.sqrt"), lambda z, w: np.sqrt(z)),
    "rsqrt": (_unary("stablehlo.rsqrt"), lambda z, w: 1 / np.sqrt(z)),
    "tanh": (_unary("stablehlo.tanh"), lambda z, w: np.tanh(z)),
    "logistic": (_unary("stablehlo.logistic"), lambda z, w: 1 / (1 + np.exp(-z))),
    "exponential_minus_one": (
        _unary("stablehlo.exponential_minus_one"),
        lambda z, w: np.expm1(z),
    ),
    "constant of bits": (
        f'%k = "stablehlo.constant"() <{{value = dense<(0x40000000, -1.5)> : {_C}}}> : () -> {_C}\n'
        f'%y = "stablehlo.add"(%z, %k) : ({_C}, {_C}) -> {_C}',
        lambda z, w: z + (2 - 1.5j),
    ),
    "constant of infinity": (
        f"""%k = "stablehlo.constant"() <{{value = dense<[(0x7F800000, 0xFF800000),
    (1.0, 0x7FC00000), (0x7FC00000, 0.0), (0.0, 2.0)]> : tensor<4xcomplex<f32>>}}>
    : () -> tensor<4xcomplex<f32>>
  %y = "stablehlo.broadcast_in_dim"(%k) <{{broadcast_dimensions = array<i64: 1>}}>
    : (tensor<4xcomplex<f32>>) -> {_C}""",
        lambda z, w: np.broadcast_to(SPECIAL, (3, 4)),
    ),
    "sine": (_unary("stablehlo.sine"), lambda z, w: np.sin(z)),
    "cosine": (_unary("stablehlo.cosine"), lambda z, w: np.cos(z)),
    "sign": (_unary("stablehlo.sign"), lambda z, w: z / np.abs(z)),
    "constant": (
        f'%k = "stablehlo.constant"() <{{value = dense<(1.5, -2.0)> : {_C}}}> : () -> {_C}\n'
        f'%y = "stablehlo.multiply"(%z, %k) : ({_C}, {_C}) -> {_C}',
        lambda z, w: z * (1.5 - 2j),
    ),
    "select": (
        f'%p = "stablehlo.compare"(%a, %c) <{{comparison_direction = '
        f"#stablehlo<comparison_direction LT>}}> : ({_F}, {_F}) -> tensor<3x4xi1>\n"
        f'%y = "stablehlo.select"(%p, %z, %w) : (tensor<3x4xi1>, {_C}, {_C}) -> {_C}',
        lambda z, w: np.where(z.real < w.real, z, w),
    ),
    "convert": (
        f'%y = "stablehlo.convert"(%a) : ({_F}) -> {_C}',
        lambda z, w: z.real.astype(np.complex64),
    ),
}


def numbers(seed: int) -> Array:
    """Return complex numbers of both signs."""
    random = np.random.default_rng(seed)
    return (random.standard_normal((3, 4)) + 1j * random.standard_normal((3, 4))).astype("c8")


@pytest.mark.parametrize("name", OPS)
def test_an_op_of_numbers(name: str) -> None:
    z, w = numbers(0), numbers(1)
    lines, function = OPS[name]
    real, imaginary = interpreted(of_numbers(lines))(z.real, z.imag, w.real, w.imag)
    expected = function(z, w)
    np.testing.assert_allclose(real, expected.real, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(imaginary, expected.imag, rtol=1e-5, atol=1e-6)


def test_matrix_products() -> None:
    lines = (
        '%y = "stablehlo.dot_general"(%z, %w) <{dot_dimension_numbers = #stablehlo.dot<'
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : "
        f"({_C}, {_C}) -> tensor<3x3xcomplex<f32>>"
    )
    z, w = numbers(0), numbers(1)
    text = of_numbers(lines, "tensor<3x3xcomplex<f32>>")
    real, imaginary = interpreted(text)(z.real, z.imag, w.real, w.imag)
    np.testing.assert_allclose(real + 1j * imaginary, z @ w.T, rtol=1e-5, atol=1e-6)


def test_sums() -> None:
    lines = f"""%k = "stablehlo.constant"() <{{value = dense<(0.0, 1.0)> : tensor<complex<f32>>}}>
    : () -> tensor<complex<f32>>
  %y = "stablehlo.reduce"(%z, %k) <{{dimensions = array<i64: 1>}}> ({{
  ^bb0(%p: tensor<complex<f32>>, %q: tensor<complex<f32>>):
    %s = "stablehlo.add"(%p, %q)
      : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
    "stablehlo.return"(%s) : (tensor<complex<f32>>) -> ()
  }}) : ({_C}, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>"""
    z = numbers(0)
    text = of_numbers(lines, "tensor<3xcomplex<f32>>")
    real, imaginary = interpreted(text)(z.real, z.imag, z.real, z.imag)
    np.testing.assert_allclose(real + 1j * imaginary, z.sum(1) + 1j, rtol=1e-5)


def transform(kind: str, shape: tuple[int, ...], lengths: list[int]) -> str:
    """Return a function of the parts of a signal that returns those of its transform."""
    result = list(shape)
    if kind == "RFFT":
        result[-1] = lengths[-1] // 2 + 1
    if kind == "IRFFT":
        result[-1] = lengths[-1]
    given, found = ("x".join(map(str, extents)) for extents in (shape, result))
    source, target = f"tensor<{given}xcomplex<f32>>", f"tensor<{found}xcomplex<f32>>"
    x, y = f"tensor<{given}xf32>", f"tensor<{found}xf32>"
    operand, type = ("%a", x) if kind == "RFFT" else ("%z", source)
    returned = y if kind == "IRFFT" else target
    return f"""func.func @main(%a: {x}, %b: {x}) -> ({y}, {y}) {{
  %z = "stablehlo.complex"(%a, %b) : ({x}, {x}) -> {source}
  %y = "stablehlo.fft"({operand}) <{{fft_type = #stablehlo<fft_type {kind}>,
    fft_length = array<i64: {", ".join(map(str, lengths))}>}}> : ({type}) -> {returned}
  %r = "stablehlo.real"(%y) : ({returned}) -> {y}
  %i = "stablehlo.imag"(%y) : ({returned}) -> {y}
  func.return %r, %i : {y}, {y}
}}"""


TRANSFORMS = [
    ("FFT", (3, 6), [6], np.fft.fft),
    ("FFT", (2, 97), [97], np.fft.fft),
    ("FFT", (2, 360), [360], np.fft.fft),
    ("IFFT", (3, 1), [1], np.fft.ifft),
    ("IFFT", (2, 3, 5), [3, 5], np.fft.ifft2),
    ("RFFT", (3, 7), [7], np.fft.rfft),
    ("RFFT", (2, 6, 130), [6, 130], np.fft.rfft2),
    ("IRFFT", (3, 4), [6], np.fft.irfft),
    ("IRFFT", (3, 4), [7], lambda z: np.fft.irfft(z, 7)),
    ("IRFFT", (2, 6, 51), [6, 100], np.fft.irfft2),
]


@pytest.mark.parametrize(("kind", "shape", "lengths", "function"), TRANSFORMS)
def test_fourier_transforms(
    kind: str, shape: tuple[int, ...], lengths: list[int], function: Callable[[Array], Array]
) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
    real, imaginary = interpreted(transform(kind, shape, lengths))(a, b)
    expected = function(a if kind == "RFFT" else a + 1j * b)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(real + 1j * imaginary, expected, rtol=0, atol=1e-6 * scale)


def test_a_compiled_filter() -> None:
    text = transform("RFFT", (4, 200), [200])
    signal = np.random.default_rng(0).standard_normal((4, 200)).astype(np.float32)
    real, imaginary = braid.compile(text.encode())(signal, signal)
    expected = np.fft.rfft(signal)
    np.testing.assert_allclose(real + 1j * imaginary, expected, rtol=0, atol=1e-5)


def test_angles_of_all_quadrants_and_zeros() -> None:
    text = """func.func @main(%y: tensor<9x9xf32>, %x: tensor<9x9xf32>) -> tensor<9x9xf32> {
  %a = "stablehlo.atan2"(%y, %x) : (tensor<9x9xf32>, tensor<9x9xf32>) -> tensor<9x9xf32>
  func.return %a : tensor<9x9xf32>
}"""
    edges = np.float32([-np.inf, -2, -1e-30, -0.0, 0.0, 3e-39, 0.5, np.inf, np.nan])
    y, x = (np.ascontiguousarray(grid) for grid in np.meshgrid(edges, edges))
    for run in (interpreted(text), braid.compile(text.encode())):
        found = run(y, x)
        np.testing.assert_allclose(found, np.arctan2(y, x), rtol=3e-7)
        np.testing.assert_array_equal(
            np.signbit(found[:8, :8]), np.signbit(np.arctan2(y, x)[:8, :8])
        )


@pytest.mark.parametrize("extent", ["4", "?"])
def test_arguments_and_results_are_pairs(extent: str) -> None:
    """Each complex one is two, of one name; dims may be open."""
    text = f"""func.func @main(%z: tensor<{extent}xcomplex<f64>>, %k: tensor<3xf32>,
    %w: tensor<{extent}xcomplex<f64>>) -> (tensor<{extent}xcomplex<f64>>, tensor<3xf32>) {{
  %y = stablehlo.divide %z, %w : tensor<{extent}xcomplex<f64>>
  return %y, %k : tensor<{extent}xcomplex<f64>>, tensor<3xf32>
}}""".encode()
    random = np.random.default_rng(0)
    z, w = (random.standard_normal(4) + 1j * random.standard_normal(4) for _ in range(2))
    k = np.arange(3, dtype=np.float32)
    for model in (braid.compile(text, jobs=1), braid.interpret(text)):
        inputs, outputs = ([port.name for port in each] for each in (model.inputs, model.outputs))
        assert inputs[:3] == ["input0.real", "input0.imag", "input1"]
        assert outputs == ["output0.real", "output0.imag", "output1"]
        real, imaginary, same = model(z.real, z.imag, k, w.real, w.imag)
        np.testing.assert_allclose(real + 1j * imaginary, z / w, rtol=1e-12)
        np.testing.assert_array_equal(same, k)
