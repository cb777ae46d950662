"""Models with ops of upstream dialects among braid's, compiled and run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import braid
from braid.support.errors import SourceLocation
from braid.tools.cli import main

Array = NDArray[Any]
X = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)

MIXED = """
  %t = braid.tanh %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %w = braid.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = linalg.matmul ins(%t, %w : tensor<8x16xf32>, tensor<16x8xf32>)
                     outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = linalg.generic {
    indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%m : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %two : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %c = arith.constant dense<1.0> : tensor<8x8xf32>
  %r = braid.add %g, %c : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = arith.addf %r, %g : tensor<8x8xf32>
"""
REDUCED = """
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.reduce ins(%x : tensor<8x16xf32>) outs(%f : tensor<8xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %c = arith.addf %a, %b : f32
      linalg.yield %c : f32
    }
"""
SLICED = """
  %s = tensor.extract_slice %x[1, 2] [2, 4] [1, 1] : tensor<8x16xf32> to tensor<2x4xf32>
  %e = math.exp %s : tensor<2x4xf32>
  %c = arith.constant dense<1.0> : tensor<2x4xf32>
  %y = arith.addf %e, %c : tensor<2x4xf32>
"""


@pytest.mark.parametrize(
    ("body", "result", "expected"),
    [
        (MIXED, "8x8", 4 * (np.tanh(X) @ X.T).T + 1),
        (REDUCED, "8", X.sum(1)),
        (SLICED, "2x4", np.exp(X[1:3, 2:6]) + 1),
    ],
)
def test_upstream_ops_are_compiled_with_the_rest(
    body: str, result: str, expected: Array, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.mlir"
    type = f"tensor<{result}xf32>"
    path.write_text(
        f"func.func @main(%x: tensor<8x16xf32>) -> {type} {{{body}  func.return %y : {type}\n}}\n"
    )
    for run in (braid.compile(path, jobs=1), braid.interpret(path)):
        np.testing.assert_allclose(run(X), expected, rtol=1e-5, atol=1e-5)
    assert main(["verify", str(path)]) == 0
    assert main(["explain", "--layouts", "--memory", str(path)]) == 0


NAMED = """
func.func @main(%x: tensor<1x2x5x5xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %e = tensor.empty() : tensor<1x3x3x3xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>)
                                outs(%f : tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  %y = linalg.exp ins(%c : tensor<1x3x3x3xf32>)
                  outs(%e : tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  return %y : tensor<1x3x3x3xf32>
}
"""


def test_what_only_upstream_parses_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "named.mlir"
    path.write_text(NAMED)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape, np.float32) for shape in ([1, 2, 5, 5], [3, 2, 3, 3]))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    expected = np.exp(np.einsum("nchwij,ocij->nohw", windows, w))
    for run in (braid.compile(path, jobs=1), braid.interpret(path)):
        np.testing.assert_allclose(run(x, w), expected, rtol=1e-5)
    assert main(["verify", str(path)]) == 0
    assert main(["explain", str(path)]) == 0


PACKED = """
func.func private @half(%n: index) -> index {
  %two = arith.constant 2 : index
  %h = arith.ceildivui %n, %two : index
  return %h : index
}
func.func @main(%x: tensor<?x?xf32>) -> (tensor<?x?x3x2xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %pad = arith.constant 7.0 : f32
  %a = tensor.dim %x, %c0 : tensor<?x?xf32>
  %b = tensor.dim %x, %c1 : tensor<?x?xf32>
  %m = call @half(%a) : (index) -> index
  %n = arith.ceildivui %b, %c3 : index
  %e = tensor.empty(%n, %m) : tensor<?x?x3x2xf32>
  %p = linalg.pack %x padding_value(%pad : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
    inner_tiles = [3, 2] into %e : tensor<?x?xf32> -> tensor<?x?x3x2xf32>
  %f = tensor.empty(%a, %b) : tensor<?x?xf32>
  %y = linalg.unpack %p outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [3, 2]
    into %f : tensor<?x?x3x2xf32> -> tensor<?x?xf32>
  return %p, %y : tensor<?x?x3x2xf32>, tensor<?x?xf32>
}
"""


def test_tiles_of_open_sizes() -> None:
    """A function of the module says how many there are."""
    model = braid.compile(PACKED.encode(), jobs=1)
    for rows, columns in ((4, 6), (5, 7), (1, 1), (8, 2)):
        x = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
        high = (-rows % 2, -columns % 3)
        padded = np.pad(x, ((0, high[0]), (0, high[1])), constant_values=7)
        tiles = padded.reshape(-1, 2, padded.shape[1] // 3, 3).transpose(2, 0, 3, 1)
        packed, back = model(x)
        np.testing.assert_array_equal(packed, tiles)
        np.testing.assert_array_equal(back, x)


POOLED = """
func.func @main(%x: tensor<1x2x5x5xi32>) -> tensor<1x2x2x2xi8> {
  %w = tensor.empty() : tensor<2x2xi8>
  %z = arith.constant -128 : i8
  %e = tensor.empty() : tensor<1x2x2x2xi8>
  %f = linalg.fill ins(%z : i8) outs(%e : tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xi8>
  %y = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>} ins(%x, %w :
    tensor<1x2x5x5xi32>, tensor<2x2xi8>) outs(%f : tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xi8>
  return %y : tensor<1x2x2x2xi8>
}
"""


def test_a_window_of_what_has_more_bits_than_its_largest() -> None:
    """Elements are cut to the bits of the result before they are compared, as upstream does."""
    x = np.random.default_rng(0).integers(-1000, 1000, (1, 2, 5, 5)).astype(np.int32)
    cut = np.lib.stride_tricks.sliding_window_view(x.astype(np.int8), (2, 2), (2, 3))[
        :, :, ::2, ::2
    ]
    for run in (braid.compile(POOLED.encode(), jobs=1), braid.interpret(POOLED.encode())):
        np.testing.assert_array_equal(run(x), cut.max((-1, -2)))


@pytest.mark.parametrize(("kind", "start"), [("max", 0), ("max", 100), ("min", -1), ("min", 7)])
def test_unsigned_windows_of_open_sizes(kind: str, start: int) -> None:
    """Bytes are compared as unsigned numbers, in the type of the result, from any start on."""
    text = f"""func.func @main(%x: tensor<?x5x5x2xi8>) -> tensor<?x2x2x2xi32> {{
  %w = tensor.empty() : tensor<2x2xi8>
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x5x5x2xi8>
  %z = arith.constant {start} : i32
  %e = tensor.empty(%n) : tensor<?x2x2x2xi32>
  %f = linalg.fill ins(%z : i32) outs(%e : tensor<?x2x2x2xi32>) -> tensor<?x2x2x2xi32>
  %y = linalg.pooling_nhwc_{kind}_unsigned {{strides = dense<2> : tensor<2xi64>}} ins(%x, %w :
    tensor<?x5x5x2xi8>, tensor<2x2xi8>) outs(%f : tensor<?x2x2x2xi32>) -> tensor<?x2x2x2xi32>
  return %y : tensor<?x2x2x2xi32>
}}"""
    x = np.random.default_rng(0).integers(-128, 128, (3, 5, 5, 2)).astype(np.int8)
    bytes_ = x.view(np.uint8).astype(np.uint32)
    windows = np.lib.stride_tricks.sliding_window_view(bytes_, (2, 2), (1, 2))[:, ::2, ::2]
    largest = np.maximum if kind == "max" else np.minimum
    expected = largest.reduce(windows, axis=(-1, -2), initial=np.uint32(start % 2**32))
    got = braid.compile(text.encode(), jobs=1)(x)
    np.testing.assert_array_equal(got.view(np.uint32), expected)


def test_upstream_says_what_is_wrong_with_an_op_of_its_own() -> None:
    text = POOLED.replace("nchw_max", "nhwc_max_unsigned").replace("i32", "i1").replace("i8", "i1")
    with pytest.raises(braid.BraidError, match="unsigned max not on uint"):
        braid.compile(text.replace("constant -128", "constant 0").encode())


def test_what_neither_parses_is_xdsls_error(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    for text, message in (
        (NAMED.replace("nchw_fchw", "nowhere"), "is not registered"),
        ('"foreign.op"() : () -> ()', "the op foreign.op is not supported"),
    ):
        path.write_text(text)
        with pytest.raises(braid.BraidError, match=message) as caught:
            braid.compile(path)
        assert caught.value.location is not None and caught.value.location.file == str(path)


def test_what_upstream_parsed_is_located_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "unsupported.mlir"
    head, _, rest = NAMED.partition("(%x")
    body = rest.partition("  return")[0].replace("3x3x3xf32> {", "1x1x1xf32> {", 1)
    path.write_text(
        f"""{head}(%k: tensor<i64>, %x{body}  %j = tensor.extract %k[] : tensor<i64>
  %i = arith.index_cast %j : i64 to index
  %s = tensor.extract_slice %y[0, 0, 0, %i] [1, 1, 1, 1] [1, 1, 1, 1]
    : tensor<1x3x3x3xf32> to tensor<1x1x1x1xf32>
  return %s : tensor<1x1x1x1xf32>
}}
"""
    )
    with pytest.raises(braid.BraidError, match="computed at run time") as caught:
        braid.compile(path)
    assert caught.value.location == SourceLocation(str(path), 12, 8)


def test_the_op_with_open_dims_is_what_has_no_code() -> None:
    """A tensor.empty of numbers beside it is not."""
    text = b"""
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i * 2)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<?xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.cbrt %a : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  return %x : tensor<?xf32>
}
"""
    with pytest.raises(braid.BraidError, match=r"no code for 'linalg.generic' with op") as caught:
        braid.compile(text)
    assert caught.value.location is not None and caught.value.location.line == 4
