"""Quotients of GPU kernels: exact where f32 is stored or rounded to whole numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import braid

RNG = np.random.default_rng(0)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, 3.4e38, 1.2e-38, 1e-45]
DIVISORS = [*EDGES, 3.0, -7.3, 1e-30, 1e30, 1e-40, 2.5e-35, 2.0**101]


def compiled(element: str, ops: str, result: str | None = None) -> Any:
    wide, one = f"tensor<8x64x{element}>", f"tensor<1x1x{element}>"
    text = (
        f'func.func @main(%a: {wide} {{braid.name = "a"}}, %b: {one} {{braid.name = "b"}})'
        f' -> ({result or wide} {{braid.name = "y"}}) {{\n{ops}\n'
        f"  func.return %y : {result or wide}\n}}\n"
    )
    ops = ops.replace("WIDE", wide).replace("ONE", one)
    text = text.replace("WIDE", wide).replace("ONE", one)
    return braid.compile(module(text), target="gpu-emulated")


def module(text: str) -> Any:
    from braid.frontends.mlir import parse_mlir
    from braid.universe import make_context

    return parse_mlir(make_context(), text, "m").module


def numbers(dtype: type, low: float, high: float) -> npt.NDArray[Any]:
    sizes = 10.0 ** RNG.uniform(low, high, 512 - len(EDGES))
    signs = RNG.choice([-1.0, 1.0], len(sizes))
    with np.errstate(over="ignore"):
        return np.concatenate([sizes * signs, EDGES]).astype(dtype).reshape(8, 64)


DIVIDED = "  %y = braid.div %a, %b : (WIDE, ONE) -> WIDE"
FLOORED = """  %q = braid.div %a, %b : (WIDE, ONE) -> WIDE
  %y = braid.floor %q : (WIDE) -> WIDE"""


@pytest.mark.parametrize("ops", [DIVIDED, FLOORED], ids=["stored", "floored"])
def test_those_of_f32_are_exact(ops: str) -> None:
    run = compiled("f32", ops)
    for divisor in DIVISORS:
        a, b = numbers(np.float32, -8, 8), np.full((1, 1), divisor, np.float32)
        with np.errstate(all="ignore"):
            expected = a / b if ops is DIVIDED else np.floor(a / b)
        # Quotients below 2^-100 may be off by one unit of the last place.
        found = np.asarray(run(a, b))
        tiny = np.abs(expected) < 2.0**-100
        np.testing.assert_array_equal(found[~tiny], expected[~tiny], err_msg=f"by {divisor}")
        off = np.abs(found[tiny] - expected[tiny])
        assert (off <= np.spacing(np.abs(expected[tiny]))).all()


@pytest.mark.parametrize("divisor", [3.0, -7.3, 0.0, np.inf, 6e-8, 6e4])
def test_those_of_f16_are_within_a_unit(divisor: float) -> None:
    a, b = numbers(np.float16, -7, 4.8), np.full((1, 1), divisor, np.float16)
    with np.errstate(all="ignore"):
        expected = (a.astype(np.float64) / b.astype(np.float64)).astype(np.float16)
    found = np.asarray(compiled("f16", DIVIDED)(a, b))
    known = np.isfinite(expected)
    np.testing.assert_array_equal(found[~known], expected[~known])
    off = np.abs(found[known].astype(np.float64) - expected[known])
    assert (off <= np.spacing(np.abs(expected[known]))).all()
