"""Elementary functions of GPU kernels, compiled for the CPU, compared with Python's."""

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from braid.lowering.gpu.codegen.device_math import definitions
from braid.lowering.gpu.codegen.emulated_functions import INTRINSICS
from braid.lowering.gpu.codegen.emulated_ir import rewritten
from braid.lowering.host.codegen.loaded_code import load_objects
from braid.lowering.host.codegen.objects import emit_object
from braid.lowering.host.codegen.target_machine import host_machine
from braid.support.errors import UnsupportedError

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 2.0, -2.0]
SIZES = 10.0 ** RNG.uniform(-30, 2.8, 3000)
REAL = np.concatenate([RNG.standard_normal(3000) * 3, SIZES, -SIZES, EDGES])
UNIT = np.concatenate([RNG.uniform(-1, 1, 3000), 10.0 ** RNG.uniform(-30, 0, 500), EDGES])
ANGLES = np.concatenate([RNG.standard_normal(3000) * 10, RNG.uniform(-1e6, 1e6, 1000), EDGES])

FUNCTIONS: dict[str, tuple[Callable[[float], float], Array]] = {
    "exp": (math.exp, REAL),
    "exp2": (math.exp2, REAL),
    "expm1": (math.expm1, REAL),
    "log": (math.log, REAL),
    "log2": (math.log2, REAL),
    "log10": (math.log10, REAL),
    "log1p": (math.log1p, REAL),
    "sin": (math.sin, ANGLES),
    "cos": (math.cos, ANGLES),
    "tan": (math.tan, ANGLES),
    "atan": (math.atan, REAL),
    "asin": (math.asin, UNIT),
    "acos": (math.acos, UNIT),
    "sinh": (math.sinh, REAL),
    "cosh": (math.cosh, REAL),
    "tanh": (math.tanh, REAL),
    "asinh": (math.asinh, REAL),
    "acosh": (math.acosh, REAL),
    "atanh": (math.atanh, UNIT),
    "erf": (math.erf, REAL),
    "cbrt": (math.cbrt, REAL),
    "sqrt": (math.sqrt, REAL),
    "rsqrt": (lambda x: math.copysign(math.inf, x) if x == 0 else 1 / math.sqrt(x), REAL),
}
WORST = {"ex2_approx": 2, "rcp_approx": 1}
"""Units of the last place that instructions may be off by."""
LEAST_EXACT = {"erf": 6}
"""Errors, in units of the last place, of f32 functions that are off by more than 5."""
ABSOLUTE = {"sin", "cos"}
"""Near their zeros the error is one of the angle."""


def on_cpu(text: str) -> str:
    """With the emulator's own functions for instructions of GPUs."""
    pairs = [(one, line) for one in text.splitlines() for line in rewritten(one)]
    lines = [inexact(line) if one.startswith("declare") else line for one, line in pairs]
    known = {line for line in lines if line.startswith("declare ")}
    return "\n".join([*lines, *(line for line in INTRINSICS if line not in known)])


def inexact(definition: str) -> str:
    """Of an instruction that approximates, with errors as large as the PTX ISA allows."""
    ulp = next((n for name, n in WORST.items() if name in definition), 0)
    return definition.replace(
        "  %y = call",
        f"""  %bits = bitcast float %r to i32
  %mixed = mul i32 %bits, -1640531535
  %upper = icmp slt i32 %mixed, 0
  %by = select i1 %upper, i32 {ulp}, i32 {-ulp}
  %moved = add i32 %bits, %by
  %size = call float @llvm.fabs.f32(float %r)
  %above = fcmp ogt float %size, 0.0
  %below = fcmp olt float %size, 0x7FF0000000000000
  %moves = and i1 %above, %below
  %worst = bitcast i32 %moved to float
  %given2 = select i1 %moves, float %worst, float %r
  %y = call""",
    ).replace("flushed(float %r)", "flushed(float %given2)")


def compiled(name: str, operands: int, single: bool) -> Callable[..., Array]:
    """Return the function on arrays."""
    type = "float" if single else "double"
    loads = "\n".join(
        f"%p{n} = getelementptr {type}, ptr %i{n}, i64 %k\n%x{n} = load {type}, ptr %p{n}"
        for n in range(operands)
    )
    given = ", ".join(f"{type} %x{n}" for n in range(operands))
    pointers = ", ".join(f"ptr %i{n}" for n in range(operands))
    text = f"""{on_cpu(definitions([name]))}
define void @run({pointers}, ptr %o, i64 %n) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  {loads}
  %y = call {type} @{name}({given})
  %q = getelementptr {type}, ptr %o, i64 %k
  store {type} %y, ptr %q
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, %n
  br i1 %end, label %done, label %loop
done:
  ret void
}}"""
    code = load_objects([emit_object(text, host_machine())])
    pointers_and_size = [ctypes.c_void_p] * (operands + 1) + [ctypes.c_int64]
    function = ctypes.CFUNCTYPE(None, *pointers_and_size)(code.address("run"))

    def run(*arrays: Array, alive: object = code) -> Array:
        own = [np.ascontiguousarray(a, np.float32 if single else np.float64) for a in arrays]
        result = np.empty_like(own[0])
        function(*(a.ctypes.data for a in own), result.ctypes.data, len(result))
        return result

    return run


def exact(function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except OverflowError:
        return math.copysign(math.inf, x) if function in (math.sinh, math.expm1) else math.inf
    except ValueError:
        if function in (math.log, math.log2, math.log10) and x == 0:
            return -math.inf
        if function is math.log1p and x == -1:
            return -math.inf
        if function is math.atanh and abs(x) == 1:
            return math.copysign(math.inf, x)
        return math.nan


def errors(got: Array, expected: Array, least: float) -> Array:
    """Errors in units of the last place; results below the normal numbers may be 0."""
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    finite = np.isfinite(expected)
    assert np.array_equal(got[~finite], expected[~finite], equal_nan=True)
    unit = np.maximum(np.spacing(np.abs(expected[finite]).astype(got.dtype)), least)
    return np.abs(got[finite].astype(np.float64) - expected[finite]) / unit.astype(np.float64)


@pytest.mark.parametrize("single", [True, False], ids=["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_in_ulp(name: str, single: bool) -> None:
    function, points = FUNCTIONS[name]
    dtype = np.float32 if single else np.float64
    points = points.astype(dtype)
    wide = np.array([exact(function, float(x)) for x in points])
    with np.errstate(over="ignore"):
        expected = wide.astype(dtype).astype(np.float64)
        if single:
            wide[np.isinf(expected)] = expected[np.isinf(expected)]
    with np.errstate(all="ignore"):
        got = compiled(f"__nv_{name}{'f' if single else ''}", 1, single)(points)
    least = float(np.finfo(dtype).eps) if name in ABSOLUTE else float(np.finfo(dtype).tiny)
    assert errors(got, wide, least).max() <= (LEAST_EXACT.get(name, 5) if single else 16), name


@pytest.mark.parametrize("single", [True, False], ids=["f32", "f64"])
def test_powers(single: bool) -> None:
    x = np.concatenate([np.abs(RNG.standard_normal(2000)) * 5, RNG.integers(-5, 6, 500)])
    y = np.concatenate([RNG.standard_normal(2000) * 4, RNG.integers(-5, 6, 500)])
    special = [(a, b) for a in EDGES for b in EDGES]
    x = np.concatenate([x, [a for a, _ in special]])
    y = np.concatenate([y, [b for _, b in special]])
    dtype = np.float32 if single else np.float64
    x, y = x.astype(dtype), y.astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
    got = compiled("__nv_powf" if single else "__nv_pow", 2, single)(x, y)
    found = errors(got, expected, float(np.finfo(dtype).tiny))
    assert found.max() <= (2 if single else 200)


@pytest.mark.parametrize("single", [True, False], ids=["f32", "f64"])
def test_remainders_are_exact(single: bool) -> None:
    dtype = np.float32 if single else np.float64
    x = np.concatenate([RNG.standard_normal(2000) * 1e6, RNG.standard_normal(200) * 1e30])
    y = np.concatenate([RNG.standard_normal(2000), RNG.standard_normal(200) * 1e-20])
    edges = [(a, b) for a in EDGES for b in EDGES]
    x = np.concatenate([x, [a for a, _ in edges]]).astype(dtype)
    y = np.concatenate([y, [b for _, b in edges]]).astype(dtype)
    got = compiled("__nv_fmodf" if single else "__nv_fmod", 2, single)(x, y)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(got, np.fmod(x, y), equal_nan=True)


def test_functions_that_there_are_not() -> None:
    with pytest.raises(UnsupportedError, match="no code for the function 'lgammaf'"):
        definitions(["__nv_lgammaf"])


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_of_huge_angles_have_their_bounds(name: str, single: bool) -> None:
    largest = 38 if single else 300
    dtype = np.float32 if single else np.float64
    angles = (10.0 ** np.linspace(6, largest, 400)).astype(dtype)
    got = compiled(f"__nv_{name}{'f' if single else ''}", 1, single)(
        np.concatenate([angles, -angles])
    )
    assert np.all(np.abs(got) <= 1)
