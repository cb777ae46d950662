"""Casts between all element types mean the same wherever they are executed.

The expected values are computed one by one with Python's integers and fractions.
"""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block

import braid
from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.unit.dialects.loop_nests import run_structure

Array = np.ndarray
BOOL = np.dtype(np.bool_)
INTEGERS = tuple(np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = tuple(map(np.dtype, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)))
TYPES = (BOOL, *INTEGERS, *FLOATS)


def interesting(dtype: np.dtype[Any]) -> Array:
    """Numbers around 0, around the bounds of every integer type, and those that only floats
    have."""
    if dtype == BOOL:
        return np.array([False, True])
    if dtype in INTEGERS:
        edges = {0, *(1 << bits for bits in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64))}
        near = {edge + step for edge in edges for step in (-2, -1, 0, 1, 2, 3)}
        bounds = np.iinfo(dtype)
        kept = sorted(n for n in near | {-n for n in near} if bounds.min <= n <= bounds.max)
        return np.array(kept, dtype)
    powers = np.array([2.0**bits for bits in (0, 7, 8, 15, 16, 31, 32, 63, 64, 100)])
    numbers = [0.0, 0.3, 0.5, 0.99, 1.5, 2.5, math.inf, 65504, 65520, 1e-7, 1e-40]
    with np.errstate(all="ignore"):
        exact = np.array([*powers, *(powers - 0.5), *(powers - 1), *(powers + 1), *numbers])
        made = exact.astype(dtype)
        near = [
            np.nextafter(made.astype(np.float64), end).astype(dtype) for end in (-np.inf, np.inf)
        ]
        made = np.concatenate([made, *near])
        return np.concatenate([made, -made, np.array([math.nan], dtype)])


def expected(value: Any, target: np.dtype[Any]) -> Any:
    """Return one number in another type."""
    if target == BOOL:
        return bool(value)
    if target in FLOATS:
        # To 32 bits first, as the documentation says.
        with np.errstate(all="ignore"):
            wide = np.asarray(value).astype(np.float64 if target == np.float64 else np.float32)
            return wide.astype(target)[()]
    bounds = np.iinfo(target)
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, float):
        number = int(value)
        wrapped = number & ((1 << bounds.bits) - 1)
        return wrapped - (1 << bounds.bits) if wrapped > bounds.max else wrapped
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return bounds.max if number > 0 else bounds.min
    return min(max(math.trunc(number), bounds.min), bounds.max)


def by_evaluate(x: Array, target: np.dtype[Any]) -> Array:
    block = Block(arg_types=[TensorType(from_numpy(x.dtype), x.shape)])
    op = elementwise("cast", block.args[0], element_type=from_numpy(target))
    return op.evaluate(x)[0]


def by_loop_nest(x: Array, target: np.dtype[Any]) -> Array:
    block = Block(arg_types=[TensorType(from_numpy(x.dtype), x.shape)])
    op = elementwise("cast", block.args[0], element_type=from_numpy(target))
    return run_structure(op, [x])[0]


def in_float64(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype in FLOATS else array


def assert_same(actual: Array, wanted: Array) -> None:
    """Bit for bit but for which NaN it is."""
    assert actual.dtype == wanted.dtype
    a, w = in_float64(actual), in_float64(wanted)
    np.testing.assert_array_equal(a, w)
    if a.dtype.kind == "f":
        known = ~np.isnan(w)
        np.testing.assert_array_equal(np.signbit(a[known]), np.signbit(w[known]))


@pytest.mark.parametrize("run", [by_evaluate, by_loop_nest])
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_casts_as_they_are_interpreted(
    source: np.dtype[Any], run: Callable[[Array, np.dtype[Any]], Array]
) -> None:
    x = interesting(source)
    for target in TYPES:
        assert_same(run(x, target), np.array([expected(v, target) for v in x], target))


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_compiled_casts(source: np.dtype[Any]) -> None:
    x = interesting(source)
    given = f"tensor<{len(x)}x{from_numpy(source)}>"
    types = [f"tensor<{len(x)}x{from_numpy(target)}>" for target in TYPES]
    lines = [f"%{index} = braid.cast %x : ({given}) -> {type}" for index, type in enumerate(types)]
    results = ", ".join(f"%{index}" for index in range(len(types)))
    text = (
        f"func.func @main(%x: {given}) -> ({', '.join(types)}) {{\n"
        + "\n".join(lines)
        + f"\nfunc.return {results} : {', '.join(types)}\n}}"
    )
    module = parse_mlir(make_context(), text, "casts.mlir").module
    for run in (braid.compile(module, jobs=1), braid.interpret(module)):
        for target, y in zip(TYPES, run(x), strict=True):
            assert_same(y, np.array([expected(v, target) for v in x], target))
