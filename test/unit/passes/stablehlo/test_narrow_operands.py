"""StableHLO on integers of 2 and 4 bits and floats of 8, which braid stores in bytes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import braid

Array = NDArray[Any]
DTYPES = {
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "ui2": ml_dtypes.uint2,
    "ui4": ml_dtypes.uint4,
}


def pairs(type: str) -> tuple[Array, Array]:
    every = np.arange(2 ** int(type[-1])).astype(np.uint8).view(DTYPES[type])
    return np.repeat(every, len(every)), np.tile(every, len(every))


def compiled(lines: str, arguments: str, result: str) -> Any:
    text = f"func.func @main({arguments}) -> {result} {{\n{lines}\nreturn %y : {result}\n}}"
    return braid.compile(text.encode(), jobs=1)


@pytest.mark.parametrize("type", DTYPES)
def test_ops_on_every_pair(type: str) -> None:
    """Several ops in one model: their results are stacked."""
    a, b = pairs(type)
    t = f"tensor<{len(a)}x{type}>"
    ops = "add subtract multiply and or xor maximum minimum".split()  # noqa: SIM905
    lines = [f"%v{i} = stablehlo.{op} %a, %b : {t}" for i, op in enumerate(ops)]
    names, types = ", ".join(f"%v{i}" for i in range(len(ops))), ", ".join([t] * len(ops))
    whole = f"tensor<{len(ops) * len(a)}x{type}>"
    lines.append(f"%y = stablehlo.concatenate {names}, dim = 0 : ({types}) -> {whole}")
    got = compiled("\n".join(lines), f"%a: {t}, %b: {t}", whole)(a, b)
    x, y, count = a.astype(np.int32), b.astype(np.int32), 2 ** int(type[-1])
    want = [x + y, x - y, x * y, x & y, x | y, x ^ y, np.maximum(x, y), np.minimum(x, y)]
    np.testing.assert_array_equal(got.astype(np.int32) % count, np.concatenate(want) % count)
    assert got.dtype == a.dtype


@pytest.mark.parametrize("type", ["i4", "ui4"])
def test_bits_and_conversions(type: str) -> None:
    a, b = pairs(type)
    t, n = f"tensor<{len(a)}x{type}>", len(a)
    words = f"tensor<{n}xi32>"
    lines = f"""%s = stablehlo.shift_right_logical %a, %b : {t}
%p = stablehlo.popcnt %a : {t}
%v = stablehlo.convert %s : ({t}) -> {words}
%w = stablehlo.convert %p : ({t}) -> {words}
%y = stablehlo.concatenate %v, %w, dim = 0 : ({words}, {words}) -> tensor<{2 * n}xi32>"""
    got = compiled(lines, f"%a: {t}, %b: {t}", f"tensor<{2 * n}xi32>")(a, b)
    bits, distance = (v.astype(np.int32) % 16 for v in (a, b))
    shifted = np.where(distance < 4, bits >> np.minimum(distance, 4), 0)
    if type == "i4":
        shifted = (shifted + 8) % 16 - 8
    np.testing.assert_array_equal(got, [*shifted, *map(int.bit_count, bits.tolist())])


def test_floats_are_rounded_once() -> None:
    every = np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e5m2)
    a, b = np.repeat(every, 256), np.tile(every, 256)
    t = "tensor<65536xf8E5M2>"
    got = compiled(f"%y = stablehlo.multiply %a, %b : {t}", f"%a: {t}, %b: {t}", t)(a, b)
    with np.errstate(all="ignore"):
        want = (a.astype(np.float32) * b.astype(np.float32)).astype(every.dtype)
    numbers = ~np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(got[numbers].view(np.uint8), want[numbers].view(np.uint8))
    assert np.isnan(got[~numbers].astype(np.float32)).all()


@pytest.mark.parametrize(
    ("source", "target"), [("12x2xi4", "12xi8"), ("12xi8", "12x2xi4"), ("3x64xi1", "3xf64"),
                           ("3xf64", "3x64xi1"), ("5x2xi2", "5xi4"), ("5xi4", "5x2xi2")]
)  # fmt: skip
def test_bits_of_fewer_and_more_elements(source: str, target: str) -> None:
    """The lowest bits come first, of whatever width."""
    kinds = {"i1": (np.bool_, 1), "i2": (ml_dtypes.int2, 2), "i4": (ml_dtypes.int4, 4),
             "i8": (np.int8, 8), "f64": (np.float64, 64)}  # fmt: skip
    (dtype, width), (other, other_width) = (kinds[t.rpartition("x")[2]] for t in (source, target))
    shape = [int(n) for n in source.split("x")[:-1]]
    bits = np.random.default_rng(0).integers(0, 2, (*shape, width)).astype(np.uint8)

    def numbers(bits: Array, dtype: Any) -> Array:
        if dtype == np.bool_:
            return bits[..., 0].astype(np.bool_)
        bytes_ = np.packbits(bits, axis=-1, bitorder="little")
        return np.ascontiguousarray(bytes_).view(dtype)[..., 0]

    lines = f"%y = stablehlo.bitcast_convert %a : (tensor<{source}>) -> tensor<{target}>"
    got = compiled(lines, f"%a: tensor<{source}>", f"tensor<{target}>")(numbers(bits, dtype))
    outer = [int(n) for n in target.split("x")[:-1]]
    want = numbers(bits.reshape(*outer, other_width), other)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_selected_slices() -> None:
    x = np.arange(30, dtype=np.float32).reshape(3, 5, 2)
    places = np.array([[4, 0], [1, 1]], np.int32)
    lines = """%y = "stablehlo.torch_index_select"(%a, %b) {dim = 1 : i64, batch_dims = 0 : i64}
  : (tensor<3x5x2xf32>, tensor<2x2xi32>) -> tensor<3x2x2x2xf32>"""
    model = compiled(lines, "%a: tensor<3x5x2xf32>, %b: tensor<2x2xi32>", "tensor<3x2x2x2xf32>")
    np.testing.assert_array_equal(model(x, places), x[:, places])
