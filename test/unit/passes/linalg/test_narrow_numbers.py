"""`arith` and `linalg` on numbers of 8 bits and less compute what ml_dtypes does, rounded once."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import braid

Array = NDArray[Any]
FLOATS = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}
INTEGERS = {"i4": ml_dtypes.int4, "i2": ml_dtypes.int2}


def elementwise(lines: str, *types: str) -> Any:
    """Return what computes the scalar `%y` of scalars `%a`, `%b`, whose type is the last one."""
    *given, result = types
    names = "ab"[: len(given)]
    arguments = ", ".join(f"%{n}: tensor<?x{t}>" for n, t in zip(names, given, strict=True))
    scalars = ", ".join(f"%{n}: {t}" for n, t in zip(names, given, strict=True))
    maps = ", ".join(["affine_map<(i) -> (i)>"] * len(types))
    listed = ", ".join(f"tensor<?x{t}>" for t in given)
    text = f"""func.func @main({arguments.replace("%", "%v")}) -> tensor<?x{result}> {{
  %zero = arith.constant 0 : index
  %n = tensor.dim %va, %zero : tensor<?x{given[0]}>
  %e = tensor.empty(%n) : tensor<?x{result}>
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
    ins({", ".join(f"%v{n}" for n in names)} : {listed}) outs(%e : tensor<?x{result}>) {{
  ^bb0({scalars}, %o: {result}):
    {lines}
    linalg.yield %y : {result}
  }} -> tensor<?x{result}>
  return %r : tensor<?x{result}>
}}"""
    return braid.compile(text.encode(), jobs=1)


def codes(dtype: Any) -> Array:
    """Return every number of a type; those of 8 bits are 256."""
    bits = int(ml_dtypes.iinfo(dtype).bits if dtype in INTEGERS.values() else 8)
    return np.arange(2**bits).astype(np.uint8).view(dtype)


def pairs(dtype: Any) -> tuple[Array, Array]:
    every = codes(dtype)
    return np.repeat(every, len(every)), np.tile(every, len(every))


def require_same(got: Array, want: Array) -> None:
    """Compare bits, but for NaNs, of which one is as good as another."""
    assert got.dtype == want.dtype
    wide, expected = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(wide), np.isnan(expected))
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(got[numbers].view(np.uint8), want[numbers].view(np.uint8))


@pytest.mark.parametrize(
    ("name", "op"), [*zip(FLOATS, ["addf", "mulf", "subf", "divf"], strict=True)]
)
def test_arithmetic_of_all_floats(name: str, op: str) -> None:
    a, b = pairs(FLOATS[name])
    function = {"addf": np.add, "mulf": np.multiply, "subf": np.subtract, "divf": np.divide}[op]
    with np.errstate(all="ignore"):
        want = function(a.astype(np.float32), b.astype(np.float32)).astype(FLOATS[name])
    require_same(elementwise(f"%y = arith.{op} %a, %b : {name}", name, name, name)(a, b), want)


@pytest.mark.parametrize(
    ("name", "op"),
    [("i2", "addi"), *(("i4", o) for o in ("subi", "muli", "andi", "maxsi", "minui"))],
)
def test_arithmetic_of_all_integers(name: str, op: str) -> None:
    a, b = pairs(INTEGERS[name])
    bits = ml_dtypes.iinfo(INTEGERS[name]).bits
    left, right = (v.astype(np.int32) for v in (a, b))
    if op.endswith("ui"):
        left, right = left % 2**bits, right % 2**bits
    function = {
        "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and,
        "maxsi": np.maximum, "minui": np.minimum,
    }[op]  # fmt: skip
    want = function(left, right) % 2**bits
    got = elementwise(f"%y = arith.{op} %a, %b : {name}", name, name, name)(a, b)
    np.testing.assert_array_equal(got.astype(np.int32) % 2**bits, want)


@pytest.mark.parametrize("name", FLOATS)
def test_conversions_of_floats(name: str) -> None:
    every = codes(FLOATS[name])
    wide = elementwise(f"%y = arith.extf %a : {name} to f32", name, "f32")(every)
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    x = np.random.default_rng(0).standard_normal(500).astype(np.float32) * 3
    x = np.concatenate([x, x * 1e-4, x * 1e5, [0, -0.0, np.inf, -np.inf, np.nan]], dtype=np.float32)
    with np.errstate(all="ignore"):
        want = x.astype(FLOATS[name])
    require_same(elementwise(f"%y = arith.truncf %a : f32 to {name}", "f32", name)(x), want)


def test_conversions_and_orders_of_integers() -> None:
    every = codes(ml_dtypes.int4)
    signed, unsigned = every.astype(np.int32), np.arange(16)
    for op, want in (("extsi", signed), ("extui", unsigned)):
        got = elementwise(f"%y = arith.{op} %a : i4 to i8", "i4", "i8")(every)
        np.testing.assert_array_equal(got, want)
    back = elementwise("%y = arith.trunci %a : i32 to i4", "i32", "i4")
    np.testing.assert_array_equal(back(np.arange(-20, 20, dtype=np.int32) * 3).astype(int) % 16,
                                  np.arange(-20, 20) * 3 % 16)  # fmt: skip
    a, b = pairs(ml_dtypes.int4)
    for predicate, values in (("slt", signed), ("ult", unsigned)):
        less = elementwise(f"%y = arith.cmpi {predicate}, %a, %b : i4", "i4", "i4", "i1")(a, b)
        np.testing.assert_array_equal(less, np.less.outer(values, values).reshape(-1))


@pytest.mark.parametrize("scale", ["f8E8M0FNU", "f32"])
def test_scaled_conversions(scale: str) -> None:
    exponents = np.arange(100, 150).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)
    factors = exponents.astype(np.float32)
    given = exponents if scale == "f8E8M0FNU" else factors * np.float32(1.75)
    x = np.arange(50).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    lines = f"%y = arith.scaling_extf %a, %b : f8E4M3FN, {scale} to f32"
    got = elementwise(lines, "f8E4M3FN", scale, "f32")(x, given)
    np.testing.assert_array_equal(got, x.astype(np.float32) * factors)
    wide = np.random.default_rng(0).standard_normal(50).astype(np.float32) * factors
    lines = f"%y = arith.scaling_truncf %a, %b : f32, {scale} to f8E4M3FN"
    require_same(
        elementwise(lines, "f32", scale, "f8E4M3FN")(wide, given),
        (wide / factors).astype(ml_dtypes.float8_e4m3fn),
    )
