"""numpy functions of the elementwise table where numpy's own differ from what is meant."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from braid.dialects.braid.relayout import Array

Function = Callable[..., Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def divide(a: Array, b: Array) -> Array:
    """a / b; integers round toward zero, and a division by zero gives 0."""
    if np.issubdtype(a.dtype, np.integer):
        quotient = np.abs(a).astype(np.int64) // np.maximum(np.abs(b).astype(np.int64), 1)
        return np.where(b == 0, 0, np.sign(a).astype(np.int64) * np.sign(b) * quotient)
    return np.divide(a, b)


def remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend, as C's fmod and `arith.remsi`."""
    return np.fmod(a, b)


def power(a: Array, b: Array) -> Array:
    """a to the power of b; integers are computed in double precision."""
    if np.issubdtype(a.dtype, np.integer):
        return np.power(a.astype(np.float64), b)
    return np.power(a, b)


def reciprocal_sqrt(a: Array) -> Array:
    """1 / sqrt(a)."""
    return 1 / np.sqrt(a)


def erf(a: Array) -> Array:
    """Gauss error function, computed in double precision."""
    return _erf(a.astype(np.float64)) if a.size else a


def identity(a: Array) -> Array:
    """a itself; the conversion to the result's element type is the work."""
    return a
