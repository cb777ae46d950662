"""Conditions under which known scales and shifts of a matmul or convolution may be folded.

The error of a product is bounded relative to the absolute values of its terms, in any order of
summation (docs/numerics.md). Folding keeps such a bound, for any input, if the folded constants are
finite and normal and known shifts do not cancel: `(x + k) - k` rounds x to multiples of the last
place of k, which a model may intend.
"""

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from braid.dialects.braid.relayout import Array

LARGEST_SCALE = 2.0**16
"""The largest factor by which weights are scaled, since partial sums are scaled with them. Sums
that exceed the largest number divided by this are the exception that the documentation names."""

_CANCELLATION = 16
"""The largest ratio of the sum of absolute shifts to the absolute sum of the shifts."""


def applied(name: str, values: Array, factor: Array) -> Array:
    """Return `values` multiplied (`mul`) or divided (`div`) by `factor`, in their own type."""
    with np.errstate(all="ignore"):
        return np.multiply(values, factor) if name == "mul" else np.divide(values, factor)


def can_scale_weights(name: str, weights: Array, factor: Array, summed: Sequence[int]) -> bool:
    """Return whether scaled weights are as precise as the original ones, for any other operand.

    All scaled weights must be finite. One may become subnormal if the largest weight that is summed
    with it, along the dims `summed`, is normal: its error is then below a rounding of that one.
    """
    if weights.dtype.kind not in "fV" or not weights.size:
        return False
    size = np.abs(applied(name, np.ones_like(factor), factor).astype(np.float64))
    if not (size <= LARGEST_SCALE).all():  # false for NaN, too
        return False
    least, largest = _normal_range(weights.dtype)
    result = np.abs(applied(name, weights, factor))
    if not (result <= largest).all():
        return False
    is_lost = (result < least) & (weights != 0) & (size != 0)
    is_small = result.max(axis=tuple(summed), keepdims=True) < least
    return not (is_lost & is_small).any()


def can_add_first(shifts: Sequence[Array]) -> bool:
    """Return whether shifts that are added in sequence may be summed at compile time.

    They must be finite and must not cancel: see `_CANCELLATION`.
    """
    wide = [shift.astype(np.float64) for shift in shifts]
    if not all(np.isfinite(shift).all() for shift in wide):
        return False
    if len(wide) < 2:
        return True
    total = wide[0]
    for shift in wide[1:]:
        total = total + shift
    largest = sum(np.abs(shift).max(initial=0) for shift in wide)
    return bool(largest <= _CANCELLATION * np.abs(total).max(initial=0))


def _normal_range(dtype: np.dtype) -> tuple[float, float]:
    """Return the smallest normal and the largest number of a float type."""
    info = cast(Any, ml_dtypes.finfo(dtype))
    return float(info.smallest_normal), float(info.max)
