"""Integer division of StableHLO by 0, and of the least integer by -1."""

from typing import Any, cast

import numpy as np
import pytest

import braid
from braid.driver.read_source import read_source
from braid.universe import make_context

TYPES = {"i8": np.int8, "i64": np.int64, "ui32": np.uint32}
COUNT = 67
"""Vectors and a remainder of them."""


def _operands(dtype: Any) -> tuple[Any, Any]:
    numbers = np.random.default_rng(0)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    a = numbers.integers(least, most, COUNT, dtype, endpoint=True)
    b = numbers.integers(max(least, -3), 4, COUNT, dtype)
    a[:6], b[:6] = [7, least, most, 0, least, least], [0, 0, 0, 0, most if least == 0 else -1, 1]
    return a, b


def _expected(op: str, a: Any, b: Any) -> Any:
    pairs = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        quotient = -1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        pairs.append(quotient if op == "divide" else x if y == 0 else x - quotient * y)
    bits = 8 * a.itemsize
    return np.array([pair % (1 << bits) for pair in pairs], f"u{a.itemsize}").view(a.dtype)


def _module(op: str, type: str, constants: tuple[str, str] | None = None) -> str:
    tensor = f"tensor<{COUNT}x{type}>"
    names = "%x, %y" if constants is None else "%a, %b"
    lines = [] if constants is None else [
        f"  %{name} = stablehlo.constant dense<{values}> : {tensor}"
        for name, values in zip("ab", constants, strict=True)
    ]  # fmt: skip
    return "\n".join(
        [
            f"func.func @main(%x: {tensor}, %y: {tensor}) -> {tensor} {{",
            *lines,
            f"  %r = stablehlo.{op} {names} : {tensor}",
            f"  return %r : {tensor}\n}}\n",
        ]
    )


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", ["divide", "remainder"])
def test_division_by_zero_and_of_the_least_integer(op: str, type: str) -> None:
    a, b = _operands(TYPES[type])
    expected = _expected(op, a, b)
    text = _module(op, type).encode()
    runs = [braid.interpret(text), braid.compile(text, jobs=1)]
    if type != "i64":
        runs.append(braid.compile(text, target="gpu-emulated", jobs=1))
    for run in runs:
        np.testing.assert_array_equal(cast(Any, run(a, b)), expected)
    folded = _module(op, type, (str(a.tolist()), str(b.tolist()))).encode()
    np.testing.assert_array_equal(cast(Any, braid.compile(folded, jobs=1)(a, b)), expected)


def test_a_constant_divisor_without_zeros_is_not_compared() -> None:
    tensor = "tensor<67xi32>"
    for divisor, compared in ((3, False), (0, True)):
        text = (
            f"func.func @main(%x: {tensor}) -> {tensor} {{\n"
            f"  %c = stablehlo.constant dense<{divisor}> : tensor<i32>\n"
            f"  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> {tensor}\n"
            f"  %y = stablehlo.divide %x, %b : {tensor}\n  return %y : {tensor}\n}}\n"
        )
        module = read_source(make_context(), text.encode()).module
        names = [op.name for op in module.walk()]
        assert ("braid.select" in names) == compared and "braid.div" in names
