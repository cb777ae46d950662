"""Ops of `linalg` and `arith` on unsigned, signed and index types: results or a diagnostic.

Upstream computes with signless integers alone; types of operands with a sign determine which op
of braid is meant.
"""

from typing import Any

import numpy as np
import pytest

import braid
from braid.support.errors import BraidError

OPS: dict[str, tuple[str, str, Any]] = {
    "linalg.add": ("67", "67", np.add),
    "linalg.mul": ("67", "67", np.multiply),
    "linalg.max": ("67", "67", np.maximum),
    "linalg.sub": ("67", "67", np.subtract),
    "arith.divui": ("67", "67", lambda a, b: (_bits(a) // _bits(b)).view(a.dtype)),
    "linalg.matmul": ("9x9", "9x9", lambda a, b: a @ b),
    "arith.addi": ("67", "67", np.add),
    "arith.maxui": ("67", "67", lambda a, b: np.where(_bits(a) > _bits(b), a, b)),
}


def _bits(array: Any) -> Any:
    return array.view(f"u{array.dtype.itemsize}")


def module_of(op: str, type: str, shape: str, result: str) -> str:
    """Return a function of one op on two tensors."""
    tensor = f"tensor<{shape}x{type}>"
    body = f"{op} ins(%a, %b : {tensor}, {tensor}) outs(%f : {tensor}) -> {tensor}"
    if op.startswith("arith."):
        body = f"{op} %a, %b : {tensor}"
    return (
        f"func.func @main(%a: {tensor}, %b: {tensor}) -> {tensor} {{\n"
        f"  %z = arith.constant dense<0> : {tensor}\n  %e = tensor.empty() : {tensor}\n"
        f"  %f = linalg.copy ins(%z : {tensor}) outs(%e : {tensor}) -> {tensor}\n"
        f"  %y = {body}\n  return %y : tensor<{result}x{type}>\n}}\n"
    )


@pytest.mark.parametrize("type", ["ui8", "si16"])
def test_types_with_and_without_a_sign_are_computed(type: str) -> None:
    dtype = np.dtype(type.replace("ui", "uint").replace("si", "int"))
    numbers = np.random.default_rng(0)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    for op, (shape, result, expected) in OPS.items():
        dims = [int(extent) for extent in shape.split("x")]
        a, b = (numbers.integers(least, most, dims, dtype, endpoint=True) for _ in range(2))
        b[b == 0] = 3
        found = braid.compile(module_of(op, type, shape, result).encode(), jobs=1)(a, b)
        assert isinstance(found, np.ndarray) and found.dtype == dtype
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(found, expected(a, b), err_msg=f"{op} {type}")


LEAST = """
func.func @main(%a: tensor<1x5x5x3xui8>, %e: tensor<1x4x4x3xui8>) -> tensor<1x4x4x3xui8> {
  %w = tensor.empty() : tensor<2x2xui8>
  %y = linalg.generic {indexing_maps = [
      affine_map<(n, h, w, c, kh, kw) -> (n, h + kh, w + kw, c)>,
      affine_map<(n, h, w, c, kh, kw) -> (kh, kw)>,
      affine_map<(n, h, w, c, kh, kw) -> (n, h, w, c)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%a, %w : tensor<1x5x5x3xui8>, tensor<2x2xui8>) outs(%e : tensor<1x4x4x3xui8>) {
  ^bb0(%x: ui8, %k: ui8, %so_far: ui8):
    %least = arith.minsi %so_far, %x : ui8
    linalg.yield %least : ui8
  } -> tensor<1x4x4x3xui8>
  return %y : tensor<1x4x4x3xui8>
}
"""


def test_the_least_of_windows_without_a_sign() -> None:
    a = np.random.default_rng(0).integers(0, 255, (1, 5, 5, 3), np.uint8, endpoint=True)
    start = np.full((1, 4, 4, 3), 200, np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(a, (2, 2), axis=(1, 2))
    found = braid.compile(LEAST.encode(), jobs=1)(a, start)
    np.testing.assert_array_equal(found, np.minimum(windows.min((-1, -2)), 200))


@pytest.mark.parametrize("op", ["linalg.add", "linalg.matmul", "arith.addi", "arith.maxui"])
@pytest.mark.parametrize("type", ["index", "i24", "i128", "ui24", "complex<f32>"])
def test_other_types_are_refused_with_those_there_are(op: str, type: str) -> None:
    shape = OPS[op][0]
    text = module_of(op, type, shape, shape).replace("arith.constant dense<0>", "tensor.empty()")
    with pytest.raises(BraidError, match=r"f32, f64, i1, i8, i16, i32 or i64|must be") as caught:
        braid.compile(text.encode(), jobs=1)
    assert caught.value.location is not None and caught.value.location.line in (2, 3, 4, 5)
