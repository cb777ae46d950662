"""Doubles become 16-bit floats by one rounding, by the functions that objects bring themselves."""

import ctypes

import numpy as np
import pytest
from ml_dtypes import bfloat16

from braid.lowering.host.codegen.loaded_code import load_objects
from braid.lowering.host.codegen.objects import emit_object
from braid.lowering.host.codegen.target_machine import host_machine

TEXT = """
define i16 @narrow(double %x) {{
  %half = fptrunc double %x to {type}
  %bits = bitcast {type} %half to i16
  ret i16 %bits
}}
"""


def values(dtype: type) -> np.ndarray:
    """Halves, what lies between neighbours, and a little beside that: where two roundings err."""
    bits = np.random.default_rng(0).integers(0, 0x7B00, 300).astype(np.uint16)
    low, high = (own.view(dtype).astype(np.float64) for own in (bits, bits + np.uint16(1)))
    middle = (low + high) / 2
    beside = [middle * (1 + sign * 2.0**-40) for sign in (1, -1)]
    special = np.array([0.0, np.inf, np.nan, 1e300, 1e-300, 65519.9, 65520.0])
    every = np.concatenate([low, middle, *beside, special])
    return np.concatenate([every, -every])


def rounded_once(x: float, dtype: type) -> float:
    """Return the nearest number of the type, by exact arithmetic on doubles; ties to even."""
    with np.errstate(over="ignore"):
        near = np.array(np.float32(x)).astype(dtype)
    if not np.isfinite(near) or not np.isfinite(x) or x == 0:
        return float(near)
    bits = int(near.view(np.uint16))
    around = np.array([bits - 1 if bits & 0x7FFF else bits, bits, bits + 1], np.uint16).view(dtype)
    distances = np.abs(around.astype(np.float64) - x)
    best = [n for n in range(3) if distances[n] == distances.min()]
    return float(around[min(best, key=lambda n: int(around[n : n + 1].view(np.uint16)[0]) & 1)])


@pytest.mark.parametrize(("type", "dtype"), [("half", np.float16), ("bfloat", bfloat16)])
def test_one_rounding(type: str, dtype: type) -> None:
    code = load_objects([emit_object(TEXT.format(type=type), host_machine())])
    narrow = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_double)(code.address("narrow"))
    for x in values(dtype):
        found = float(np.array(narrow(x), np.uint16).view(dtype))
        np.testing.assert_equal(found, rounded_once(float(x), dtype), err_msg=repr(x))
