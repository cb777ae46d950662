"""numpy functions of the elementwise table, where numpy's own have another meaning."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from braid.dialects.braid.dtypes import holds_floats
from braid.dialects.braid.relayout import Array

Function = Callable[..., Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def wide(array: Array) -> Array:
    """Return `array` with narrow floats widened to the 32 bits in which sums are computed."""
    is_narrow_float = array.dtype.itemsize < 4 and holds_floats(array.dtype)
    return array.astype(np.float32) if is_narrow_float else array


def convert(a: Array, dtype: np.dtype[Any]) -> Array:
    """Return `a` in another element type.

    A float is rounded toward zero and saturated to the range of the type; NaN becomes 0. Integers
    wrap around. A value that becomes a 16-bit float is rounded to 32 bits first, since it is
    computed there.
    """
    if holds_floats(a.dtype) and dtype.kind in "iu":
        return _saturated(a.astype(np.float64), dtype)
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        a = a.astype(np.float32)
    return a.astype(dtype)


def _saturated(a: Array, dtype: np.dtype[Any]) -> Array:
    """Return doubles as integers, saturated to the range of the type.

    The bounds of comparisons are powers of two, which doubles hold exactly.
    """
    least, largest = np.iinfo(dtype).min, np.iinfo(dtype).max
    above, below = a >= 2.0 ** largest.bit_length(), a < least
    inside = np.where(above | below | np.isnan(a), 0, a).astype(dtype)
    bounds = np.array(largest, dtype), np.array(least, dtype)
    return np.where(above, bounds[0], np.where(below, bounds[1], inside))


def sign(a: Array) -> Array:
    """Return -1, 0 or 1; a zero stays as it is, with its sign."""
    return np.where(a == 0, a, np.sign(a))


def divide(a: Array, b: Array) -> Array:
    """Return a / b; integers round toward zero, and a division by zero gives 0."""
    if not np.issubdtype(a.dtype, np.integer):
        return np.divide(a, b)
    floor, rest = np.divmod(a, np.where(b == 0, 1, b))
    return np.where(b == 0, 0, floor + ((rest != 0) & ((a < 0) != (b < 0))))


def remainder(a: Array, b: Array) -> Array:
    """Return the remainder with the sign of the dividend, as C's fmod and `arith.remsi`."""
    return np.fmod(a, b)


def power(a: Array, b: Array) -> Array:
    """Return a to the power of b; integer results with a negative b are truncated.

    Powers of floats are C's `pow`; numpy computes a square root for the power 0.5.
    """
    if holds_floats(b.dtype):
        edge = (b == 0.5) & ((a == 0) | (a == -np.inf))
        return np.where(edge, np.abs(a), np.power(a, b))
    if not np.issubdtype(b.dtype, np.signedinteger):
        return np.power(a, b)
    whole = np.power(a, np.maximum(b, 0))
    fraction = np.where(np.abs(a) == 1, np.where(b % 2 == 0, 1, a), 0)
    return np.where(b < 0, fraction, whole)


def maximum(a: Array, b: Array) -> Array:
    """Return the maximum of IEEE 754-2019: NaN if either is NaN, and 0.0 above -0.0."""
    larger = np.maximum(a, b)
    if not holds_floats(larger.dtype):
        return larger
    return np.where((a == 0) & (b == 0), a + b, larger)


def minimum(a: Array, b: Array) -> Array:
    """Return the minimum of IEEE 754-2019: NaN if either is NaN, and -0.0 below 0.0."""
    smaller = np.minimum(a, b)
    if not holds_floats(smaller.dtype):
        return smaller
    return np.where((a == 0) & (b == 0), -(-a - b), smaller)


def by_order(kind: str, a: Array) -> Array:
    """Return floats as integers that order -0.0 below 0.0, and other arrays unchanged.

    NaN is beyond all other numbers, on the side that reduction `kind` (`maximum` or `minimum`)
    looks for. `from_order` undoes it.
    """
    if kind not in ("maximum", "minimum") or not holds_floats(a.dtype):
        return a
    bits = _reflected(a.view(f"i{a.dtype.itemsize}"))
    bounds = np.iinfo(bits.dtype)
    beyond = bounds.max if kind == "maximum" else bounds.min
    return np.where(np.isnan(a), np.array(beyond, bits.dtype), bits)


def from_order(bits: Array, dtype: np.dtype[Any]) -> Array:
    """Return the floats that `by_order` converted to `bits`, or `bits` if it did not."""
    is_mapped = bits.dtype.kind == "i" and holds_floats(dtype)
    return _reflected(bits).view(dtype) if is_mapped else bits


def _reflected(bits: Array) -> Array:
    """Return integers with all bits but the sign flipped in the negative ones."""
    return bits ^ ((bits >> (8 * bits.dtype.itemsize - 1)) & np.iinfo(bits.dtype).max)


def reciprocal_sqrt(a: Array) -> Array:
    """Return 1 / sqrt(a)."""
    return 1 / np.sqrt(a)


def erf(a: Array) -> Array:
    """Return the Gauss error function, computed in double precision."""
    return _erf(a.astype(np.float64)) if a.size else a


def identity(a: Array) -> Array:
    """Return `a` itself; the conversion to the result's element type is the work."""
    return a
