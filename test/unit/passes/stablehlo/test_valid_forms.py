"""Rare forms of StableHLO ops are converted, or rejected by name."""

from math import lgamma

import numpy as np
import pytest

import braid
from braid.support.errors import UnsupportedError
from braid.support.mlir_bindings import package
from test.unit.passes.stablehlo.case import inputs_of, module_of, reference
from test.unit.passes.stablehlo.placed_cases import PLACED_CASES

pytest.importorskip(f"{package()}._mlir_libs._stablehlo")

RAW = """#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3,
  input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2,
  kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1],
  output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>"""
SHORT = "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"


@pytest.mark.parametrize(("dims", "rows"), [(RAW, 5), (SHORT, 5), (SHORT, 2)])
def test_convolutions(dims: str, rows: int) -> None:
    x, w = f"tensor<1x{rows}x5x2xf32>", "tensor<3x3x2x4xf32>"
    y = f"tensor<1x{max(rows - 2, 0)}x3x4xf32>"
    text = f"""func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %y = "stablehlo.convolution"(%x, %w) {{dimension_numbers = {dims}, batch_group_count = 1 : i64,
    feature_group_count = 1 : i64}} : ({x}, {w}) -> {y}
  "func.return"(%y) : ({y}) -> ()
}}"""
    numbers = np.random.default_rng(0)
    image = numbers.standard_normal((1, rows, 5, 2), np.float32)
    weight = numbers.standard_normal((3, 3, 2, 4), np.float32)
    expected = np.zeros((1, max(rows - 2, 0), 3, 4), np.float32)
    for i, j in np.ndindex(expected.shape[1:3]):
        window = image[0, i : i + 3, j : j + 3]
        expected[0, i, j] = np.einsum("hwc,hwco->o", window, weight)
    found = braid.compile(text.encode())(image, weight)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


GATHER = """
func.func @main(%a: tensor<2x3x4x5xf32>, %i: tensor<3x6x2x2xi32>) -> tensor<3x6x2x1x5xf32> {
  %y = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [3, 4],
    operand_batching_dims = [0, 1], start_indices_batching_dims = [2, 0], start_index_map = [3, 2],
    index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1, 5>, indices_are_sorted = false}>
    : (tensor<2x3x4x5xf32>, tensor<3x6x2x2xi32>) -> tensor<3x6x2x1x5xf32>
  return %y : tensor<3x6x2x1x5xf32>
}
"""


def test_a_gather_whose_starts_include_a_dim_that_is_read_whole() -> None:
    a = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    places = np.random.default_rng(0).integers(0, 4, (3, 6, 2, 2)).astype(np.int32)
    expected = np.zeros((3, 6, 2, 1, 5), np.float32)
    for p, q, r in np.ndindex(3, 6, 2):
        expected[p, q, r, 0] = a[r, p, places[p, q, r, 1]]
    np.testing.assert_array_equal(braid.compile(GATHER.encode())(a, places), expected)


def test_dot_and_logical_shifts() -> None:
    text = """func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2xf32> {
  %y = stablehlo.dot %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}"""
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(braid.compile(text.encode())(a, b), a @ b)
    text = """func.func @main(%a: tensor<5xi32>, %b: tensor<5xi32>) -> tensor<5xi32> {
  %y = stablehlo.shift_right_logical %a, %b : tensor<5xi32>
  return %y : tensor<5xi32>
}"""
    shifts = [np.array(n, np.int32) for n in ([-8, -1, 8, -1, -1], [1, 31, 2, 32, 40])]
    expected = np.array([2**31 - 4, 1, 2, 0, 0], np.int32)
    np.testing.assert_array_equal(braid.compile(text.encode())(*shifts), expected)


@pytest.mark.parametrize("op", ["partition_id", "replica_id"])
def test_what_is_not_converted_is_refused_by_name(op: str) -> None:
    t = "tensor<ui32>"
    text = f"func.func @main() -> {t} {{\n  %y = stablehlo.{op} : {t}\n  return %y : {t}\n}}"
    with pytest.raises(UnsupportedError, match=f"the op stablehlo.{op} is not supported") as caught:
        braid.compile(text.encode())
    assert caught.value.location is not None and caught.value.location.line == 2


def test_ops_of_chlo_that_upstream_expands() -> None:
    text = """func.func @main(%a: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %e = chlo.erf_inv %a : tensor<5xf32> -> tensor<5xf32>
  %x = chlo.erf %e : tensor<5xf32> -> tensor<5xf32>
  %y = chlo.lgamma %a : tensor<5xf32> -> tensor<5xf32>
  return %x, %y : tensor<5xf32>, tensor<5xf32>
}"""
    a = np.array([0.1, 0.3, 0.5, 0.75, 0.9], np.float32)
    inverse, gamma = braid.compile(text.encode())(a)
    np.testing.assert_allclose(inverse, a, rtol=1e-5)
    np.testing.assert_allclose(gamma, [lgamma(x) for x in a], rtol=1e-5)


def test_composites_and_tuples() -> None:
    text = """func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %v, %i = stablehlo.composite "chlo.top_k" %a {composite_attributes = {k = 2 : i64},
    decomposition = @impl, version = 1 : i32} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  %t = stablehlo.tuple %i, %v : tuple<tensor<2xi32>, tensor<2xf32>>
  %w = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xi32>, tensor<2xf32>>) -> tensor<2xf32>
  return %w, %i : tensor<2xf32>, tensor<2xi32>
}
func.func private @impl(%a: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %v, %i = chlo.top_k(%a, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
  return %v, %i : tensor<2xf32>, tensor<2xi32>
}"""
    values, places = braid.compile(text.encode())(np.float32([3, 9, -1, 4]))
    np.testing.assert_array_equal(values, np.float32([9, 4]))
    np.testing.assert_array_equal(places, np.int32([1, 3]))


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)),
    ("ij,kj->ki", (2, 3), (4, 3)),
    ("ijk,l->jl", (2, 3, 4), (5,)),
    ("i,j->ji", (2,), (3,)),
]


@pytest.mark.parametrize(("config", "left", "right"), EINSUMS)
def test_einsum(config: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal(shape).astype(np.float32) for shape in (left, right))
    expected = np.einsum(config, a, b)
    x, y, z = (f"tensor<{'x'.join(map(str, v.shape))}xf32>" for v in (a, b, expected))
    text = f"""func.func @main(%a: {x}, %b: {y}) -> {z} {{
  %y = stablehlo.einsum %a, %b, config = "{config}" : ({x}, {y}) -> {z}
  return %y : {z}
}}"""
    np.testing.assert_allclose(braid.compile(text.encode())(a, b), expected, rtol=1e-5, atol=1e-6)


def test_unary_einsum() -> None:
    text = """func.func @main(%a: tensor<2x3x4xf32>) -> tensor<4x3xf32> {
  %y = "stablehlo.unary_einsum"(%a) <{einsum_config = "ijk->kj"}>
    : (tensor<2x3x4xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}"""
    a = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(braid.compile(text.encode())(a), a.sum(0).T, rtol=1e-6)


def test_arithmetic_shifts_of_unsigned_integers_fill_in_the_first_bit() -> None:
    text = """func.func @main(%a: tensor<4xui8>, %b: tensor<4xui8>) -> tensor<4xui8> {
  %y = stablehlo.shift_right_arithmetic %a, %b : tensor<4xui8>
  return %y : tensor<4xui8>
}"""
    shifts = [np.array(n, np.uint8) for n in ([255, 128, 100, 255], [1, 7, 4, 255])]
    found = braid.compile(text.encode())(*shifts)
    np.testing.assert_array_equal(found, np.array([255, 255, 6, 255], np.uint8))


ORDERED = [-np.nan, -np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan]
"""Floats in the order that IEEE 754 calls total."""


def test_the_total_order_of_floats() -> None:
    text = """
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi1>) {
  %s = "stablehlo.sort"(%a) <{dimension = 0 : i64}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.compare LT, %p, %q, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  return %s, %c : tensor<8xf32>, tensor<8xi1>
}"""
    ordered, places = np.array(ORDERED, np.float32), np.random.default_rng(0).permutation(8)
    found = braid.compile(text.encode())(ordered[places], ordered)
    np.testing.assert_array_equal(found[0].view(np.int32), ordered.view(np.int32))
    np.testing.assert_array_equal(found[1], places < np.arange(8))


@pytest.mark.parametrize("name", ["sort by two keys", "scatter of windows", "argmax", "scatter or"])
def test_compiled_models_compute_the_same(name: str) -> None:
    text = module_of(PLACED_CASES[name])
    inputs = inputs_of(text)
    found, expected = braid.compile(text.encode())(*inputs), reference(text, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
