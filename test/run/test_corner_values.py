"""Corner values: signed zeros, powers of infinity, bits of NaN, and rounding."""

import ctypes
import itertools
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper

import braid
from braid.interpreted import interpret

Array = NDArray[Any]
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
LEAST = {"f32": "0xFF800000", "f64": "0xFFF0000000000000", "f16": "0xFC00", "bf16": "0xFF80"}
ZEROS = [-0.0, 0.0, -0.0, 0.0, np.nan, 1, -1, -0.0, np.nan, 2] * 4
OTHERS = [0.0, -0.0, -0.0, 0.0, 1, np.nan, -0.0, -1, np.nan, 3] * 4
EXTREMA = ("maximum", "minimum")


def runs(text: str, *targets: str) -> list[braid.Model]:
    """Return the results interpreted, compiled for this machine, and for `targets`."""
    source = text.encode()
    compiled = [braid.compile(source, jobs=1, target=target) for target in ("host", *targets)]
    return [interpret(source), *compiled]


def extreme(kind: str, a: float, b: float) -> float:
    """IEEE 754-2019: NaN if either is, zeros in the order of their signs."""
    if np.isnan(a) or np.isnan(b):
        return np.nan
    if a == b == 0:
        both = np.signbit(a), np.signbit(b)
        return -0.0 if (all(both) if kind == "maximum" else any(both)) else 0.0
    return max(a, b) if kind == "maximum" else min(a, b)


def assert_same(actual: Any, expected: Any) -> None:
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize(
    ("kind", "type"), [("maximum", "f32"), ("minimum", "f32"), ("maximum", "bf16")]
)
def test_zeros_have_an_order(kind: str, type: str) -> None:
    """Of computed operands, and with a known zero on either side."""
    a, b = np.array(ZEROS, DTYPES[type]), np.array(OTHERS, DTYPES[type])
    of = f"tensor<{a.size}x{type}>"
    text = f"""func.func @main(%a: {of}, %b: {of}) -> ({of}, {of}, {of}, {of}) {{
  %p = stablehlo.constant dense<0.0> : {of}
  %n = stablehlo.constant dense<-0.0> : {of}
  %0 = stablehlo.{kind} %a, %b : {of}
  %1 = stablehlo.{kind} %a, %p : {of}
  %2 = stablehlo.{kind} %n, %a : {of}
  %3 = stablehlo.{kind} %p, %n : {of}
  return %0, %1, %2, %3 : {of}, {of}, {of}, {of}
}}"""
    for model in runs(text, *(["gpu-emulated"] if kind == "minimum" else [])):
        found = model(a, b)
        operands = ((a, b), (a, [0.0]), (a, [-0.0]), ([0.0], [-0.0]))
        for y, (left, right) in zip(found, operands, strict=True):
            pairs = np.broadcast(np.asarray(left, float), np.asarray(right, float))
            wanted = [extreme(kind, float(p), float(q)) for p, q in pairs]
            assert_same(y, np.broadcast_to(wanted, a.shape))


@pytest.mark.parametrize("kind", EXTREMA)
def test_reductions_and_windows_order_zeros(kind: str) -> None:
    x = np.array([[-0.0] * 3 + [0.0], [0.0] + [-0.0] * 3, [-0.0] * 4, [0.0, 0.0, -1, np.nan]])
    x = np.tile(x, (1, 6)).astype(np.float32)
    infinity = LEAST["f32"] if kind == "maximum" else "0x7F800000"
    results = "tensor<4xf32>, tensor<24xf32>, tensor<4x12xf32>"
    text = f"""func.func @main(%x: tensor<4x24xf32>) -> ({results}) {{
  %i = stablehlo.constant dense<{infinity}> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.{kind} across dimensions = [1]
    : (tensor<4x24xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reduce(%x init: %i) applies stablehlo.{kind} across dimensions = [0]
    : (tensor<4x24xf32>, tensor<f32>) -> tensor<24xf32>
  %2 = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 1, 2>,
      window_strides = array<i64: 1, 2>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.{kind} %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
  }}) : (tensor<4x24xf32>, tensor<f32>) -> tensor<4x12xf32>
  return %0, %1, %2 : {results}
}}"""

    def folded(values: Array) -> float:
        found = float(values[0])
        for value in values[1:]:
            found = extreme(kind, found, float(value))
        return found

    wanted = (
        [folded(row) for row in x],
        [folded(column) for column in x.T],
        [[folded(pair) for pair in row.reshape(12, 2)] for row in x],
    )
    for model in runs(text, *(["gpu-emulated"] if kind == "minimum" else [])):
        for y, expected in zip(model(x), wanted, strict=True):
            assert_same(y, expected)


BASES = [0.0, -0.0, 1, -1, 0.5, -0.5, 3.7, -3.7, np.inf, -np.inf, np.nan, 1e38, -1e-30]
POWERS = [0.0, 0.5, -0.5, 1, -1, 2, -2, 3, 4, 1 / 3, -1 / 3, 2.5, -1.5, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_are_those_of_c(dtype: type) -> None:
    """Computed exponents, and known ones, each of which has a special form."""
    power = ctypes.CDLL("libm.so.6").pow
    power.restype, power.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    x = np.array(BASES, dtype)
    known = [np.array([y], dtype) for y in POWERS]
    names = [f"y{index}" for index in range(len(known))]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("Pow", ["x", f"k{name}"], [name]) for name in names]
    shape = [len(POWERS), len(BASES)]
    nodes.append(helper.make_node("Pow", ["x", "e"], ["all"]))
    graph = helper.make_graph(
        nodes,
        "powers",
        [
            helper.make_tensor_value_info("x", number, [len(BASES)]),
            helper.make_tensor_value_info("e", number, [len(POWERS), 1]),
        ],
        [helper.make_tensor_value_info(name, number, [len(BASES)]) for name in names]
        + [helper.make_tensor_value_info("all", number, shape)],
        [numpy_helper.from_array(y, f"k{name}") for y, name in zip(known, names, strict=True)],
    )
    model = made(graph)
    wanted = np.array([[power(a, float(y[0])) for a in x.tolist()] for y in known])
    with np.errstate(all="ignore"):
        wanted = wanted.astype(dtype)
    for run in (interpret(model), braid.compile(model, jobs=1)):
        *each, together = run(x, np.array(POWERS, dtype)[:, None])
        for found in (np.array(each), together):
            np.testing.assert_allclose(found, wanted, 1e-5)
            zero = wanted == 0
            np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


def made(graph: Any, opset: int = 19) -> ModelProto:
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize(
    ("type", "words"),
    [
        ("f32", ["0x7FC00001", "0xFFC12345", "0x7FA00001"]),
        ("f64", ["0x7FF8000000000001", "0xFFF0000000000001"]),
        ("f16", ["0x7E01", "0xFD01"]),
        ("bf16", ["0x7FC1", "0xFF81"]),
    ],
)
def test_constants_keep_the_bits_of_nan(type: str, words: list[str]) -> None:
    of, one = f"tensor<{len(words)}x{type}>", f"tensor<2x{type}>"
    text = f"""func.func @main() -> ({of}, {one}) {{
  %0 = stablehlo.constant dense<[{", ".join(words)}]> : {of}
  %1 = stablehlo.constant dense<{words[-1]}> : {one}
  return %0, %1 : {of}, {one}
}}"""
    for model in runs(text):
        found, splat = model()
        bits = [int(word, 16) for word in words]
        assert found.view(f"u{found.itemsize}").tolist() == bits
        assert splat.view(f"u{found.itemsize}").tolist() == bits[-1:] * 2


def resized(x: Array, sizes: list[int], **attributes: Any) -> ModelProto:
    number = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], antialias=1, **attributes)
    return made(
        helper.make_graph(
            [node],
            "resized",
            [helper.make_tensor_value_info("x", number, x.shape)],
            [helper.make_tensor_value_info("y", number, sizes)],
            [numpy_helper.from_array(np.array(sizes), "s")],
        )
    )


@pytest.mark.parametrize(("mode", "dtype"), [("linear", np.uint8), ("cubic", np.int32)])
def test_antialiased_integers_are_rounded(mode: str, dtype: type) -> None:
    """As ONNX Runtime rounds after each dim; halves may differ, whose sums it has in f32."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (1, 2, 9, 7)).astype(dtype)
    model = resized(x, [1, 2, 4, 5], mode=mode)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    found = interpret(model)(x)
    np.testing.assert_array_equal(braid.compile(model, jobs=1)(x), found)
    difference = np.abs(found.astype(int) - np.asarray(expected).astype(int))
    assert difference.max() <= 1 and (difference > 0).mean() < 0.05


def test_antialiased_signed_bytes_are_rounded() -> None:
    """ONNX Runtime 1.32 has no right answer for these; this one is ONNX's own."""
    x = np.array([[[[3, -2, 5, 7, -6, 1, 2, -3]]]], np.int8)
    how = {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}
    model = resized(x, [1, 1, 1, 5], **how)
    for run in (interpret(model), braid.compile(model, jobs=1)):
        assert run(x).ravel().tolist() == [1, 4, 1, 0, -1]


def transposed(x: Array, w: Array, attributes: dict[str, Any]) -> ModelProto:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "transposed",
        [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(w, "w")],
    )
    return made(graph)


def test_output_shapes_of_transposed_convolutions() -> None:
    """Odd paddings, auto_pad, output padding, dilations and groups, in one to three dims."""
    rng, compared = np.random.default_rng(3), 0
    settings = itertools.product((1, 2, 3), ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), (1, 2))
    for rank, auto_pad, groups in settings:
        spatial, kernel = rng.integers(2, 5, rank), rng.integers(1, 4, rank)
        strides, dilations = rng.integers(1, 4, rank), rng.integers(1, 3, rank)
        extra = [int(rng.integers(0, stride)) for stride in strides]
        full = strides * (spatial - 1) + dilations * (kernel - 1) + 1 + extra
        attributes = {
            "strides": strides.tolist(),
            "dilations": dilations.tolist(),
            "group": groups,
            "auto_pad": auto_pad,
            "output_padding": extra,
            "output_shape": np.maximum(1, full - rng.choice([1, 3], rank)).tolist(),
        }
        x = rng.integers(-4, 5, (1, 2, *spatial)).astype(np.float32)
        w = rng.integers(-4, 5, (2, 2, *kernel)).astype(np.float32)
        model = transposed(x, w, attributes)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        np.testing.assert_array_equal(interpret(model)(x), session.run(None, {"x": x})[0])
        compared += 1
    assert compared == 24
    x, w = np.array([[[1, 2, 3, 4]]], np.float32), np.array([[[1, 10, 100]]], np.float32)
    y = braid.compile(transposed(x, w, {"strides": [2], "output_shape": [8]}), jobs=1)(x)
    assert y.ravel().tolist() == [10, 102, 20, 203, 30, 304, 40, 400]


def one_node(op: str, x: Array, inputs: dict[str, Array], outputs: list[int], **attributes: Any):
    """Return a model of one op on `x` and known inputs, with outputs of these types."""
    names = [f"y{index}" for index in range(len(outputs))]
    node = helper.make_node(op, ["x", *inputs], names, **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info(y, t, None) for y, t in zip(names, outputs, strict=True)],
        [numpy_helper.from_array(value, name) for name, value in inputs.items()],
    )
    return made(graph)


INTEGERS = np.array([[[3, 6, 9, 2, 4, -8, -7, 5]]], np.int64)


@pytest.mark.parametrize(
    ("op", "attributes", "expected"),
    [
        ("AveragePool", {"kernel_shape": [3], "strides": [3]}, [6, 0]),
        ("AveragePool", {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}, [4, 5, 0, -3]),
        ("GlobalAveragePool", {}, [1]),
    ],
)
def test_averages_of_integers(op: str, attributes: dict[str, Any], expected: list[int]) -> None:
    """ONNX has no such conversion, PyTorch does: rounded toward zero."""
    model = one_node(op, INTEGERS, {}, [7], **attributes)
    for run in (interpret(model), braid.compile(model, jobs=1)):
        assert run(INTEGERS).ravel().tolist() == expected


@pytest.mark.parametrize("largest", [0, 1])
def test_bools_are_sorted(largest: int) -> None:
    x = np.random.default_rng(5).integers(0, 2, 40).astype(bool)
    model = one_node("TopK", x, {"k": np.array([40])}, [9, 7], largest=largest, axis=0)
    for run in (interpret(model), braid.compile(model, jobs=1)):
        values, indices = run(x)
        expected = np.sort(x)[::-1] if largest else np.sort(x)
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(x[indices], expected)
        assert sorted(indices.tolist()) == list(range(40))


def test_reductions_of_scalars() -> None:
    """Without axes, with no axes, and along PyTorch's default dim."""
    x = np.array(-3.0, np.float32)
    wanted = {"Max": -3, "Min": -3, "Sum": -3, "Mean": -3, "Prod": -3, "L1": 3, "L2": 3}
    for kind, expected in {**wanted, "SumSquare": 9, "LogSumExp": -3}.items():
        for axes in (None, [], [0], [-1]):
            inputs = {} if axes is None else {"axes": np.array(axes, np.int64)}
            for keepdims in (0, 1):
                model = one_node(f"Reduce{kind}", x, inputs, [1], keepdims=keepdims)
                y = interpret(model)(x)
                assert y.shape == () and y == pytest.approx(expected)


@pytest.mark.parametrize("op", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_of_integers_are_cut_off(op: str) -> None:
    x = np.array([[3, 20, 9, 2], [30, 1, 2, 7]], np.int32)
    model = one_node(op, x, {"axes": np.array([1])}, [6], keepdims=0)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for run in (interpret(model), braid.compile(model, jobs=1)):
        np.testing.assert_array_equal(run(x), session.run(None, {"x": x})[0])
