"""Conversions to and from numbers of 8 bits and less, against ml_dtypes' own."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper

import braid
from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from test.unit.frontends.onnx.conftest import graph_of, model_of

FLOATS = [
    ml_dtypes.float4_e2m1fn,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
]
INTEGERS = [ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4]


def converted(x: Any, dtype: Any, *, compiled: bool = False, **attributes: Any) -> Any:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("Cast", ["x"], ["y"], to=number, **attributes)
    imported = import_onnx(model_of(graph_of([node], {"x": x}, ["y"]), 25))
    imported.module.verify()
    if compiled:
        return braid.compile(imported.module, parameters=imported.parameters)(x)
    return interpret(imported.module, [x], parameters=imported.parameters)[0]


def every_code(dtype: Any) -> Any:
    bits = ml_dtypes.finfo(dtype).bits if dtype in FLOATS else ml_dtypes.iinfo(dtype).bits
    return np.arange(2**bits).astype(np.uint8).view(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_decoding_every_code(dtype: Any) -> None:
    codes = every_code(dtype)
    np.testing.assert_array_equal(converted(codes, np.float32), codes.astype(np.float32))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_as_ml_dtypes_does(dtype: Any, saturate: int) -> None:
    numbers = every_code(dtype).astype(np.float32)
    numbers = numbers[np.isfinite(numbers)]
    largest, grid = numbers.max(), np.sort(numbers)
    between = (grid[1:] + grid[:-1]) / 2
    beside = np.nextafter(between, np.float32(0)), np.nextafter(between, np.float32(1e9))
    outside = np.array([1.01, 1.5, 2, 1e6, np.inf], np.float32) * largest
    x = np.concatenate([numbers, between, *beside, outside, -outside, [np.nan, 1e-30, -1e-30]])
    x = x.astype(np.float32)
    limited = np.clip(x, -largest, largest) if saturate else x
    expected = limited.astype(dtype)
    result = converted(x, dtype, saturate=saturate)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))
    signs = np.signbit(result.astype(np.float32)) == np.signbit(expected.astype(np.float32))
    assert (signs | np.isnan(x)).all()


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_quantization_saturates_if_asked_to(dtype: Any, saturate: int) -> None:
    x = np.array([0.5, -2, 1e6, -1e6, np.inf, np.nan], np.float32)
    scale = np.float32(0.5)
    zero = helper.make_tensor("zero", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [], [0.0])
    quantize = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"], saturate=saturate)
    graph = graph_of([quantize], {"x": x}, ["y"], {"scale": scale})
    graph.initializer.append(zero)
    imported = import_onnx(model_of(graph, 23))
    result = interpret(imported.module, [x], parameters=imported.parameters)[0]
    expected = converted(x / scale, dtype, saturate=saturate)
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(("rounding", "codes"), [("up", [2, 2, 4]), ("down", [1, 2, 2])])
def test_powers_of_two(rounding: str, codes: list[int]) -> None:
    x = np.array([1.4, 2, 3.5, np.nan], np.float32)
    result = converted(x, ml_dtypes.float8_e8m0fnu, round_mode=rounding)
    np.testing.assert_array_equal(result.astype(np.float32), [*codes, np.nan])


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.int4])
def test_compiled_conversions_are_the_interpreted_ones(dtype: Any) -> None:
    x = np.linspace(-600, 600, 97).astype(np.float32)
    codes = converted(x, dtype)
    np.testing.assert_array_equal(
        converted(x, dtype, compiled=True).view(np.uint8), codes.view(np.uint8)
    )
    numbers = converted(codes, np.float32, compiled=True)
    np.testing.assert_array_equal(numbers, codes.astype(np.float32))


def test_narrow_weights_are_scaled_by_blocks() -> None:
    w = np.arange(-8, 8).reshape(4, 4).astype(ml_dtypes.int4)
    scale = np.array([[0.5, 2], [1, 4], [0.25, 1], [3, 1]], np.float32)
    node = helper.make_node("DequantizeLinear", ["w", "scale"], ["y"], axis=1, block_size=2)
    graph = graph_of([node], {}, ["y"], {"scale": scale})
    graph.initializer.append(numpy_helper.from_array(w, "w"))
    imported = import_onnx(model_of(graph, 21))
    (result,) = interpret(imported.module, [], parameters=imported.parameters)
    np.testing.assert_array_equal(result, w.astype(np.float32) * np.repeat(scale, 2, axis=1))
