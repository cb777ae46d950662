"""Where known scales and shifts of a product may be folded, whatever its other operand is.

A product's own error is bounded relative to the absolute values of its terms, in any order
(docs/numerics.md). Folding keeps such a bound where folded numbers are finite and rounded like
normal ones, and where known shifts do not cancel: `(x + k) - k` rounds x to multiples of the last
place of k, and means to.
"""

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from braid.dialects.braid.relayout import Array

LARGEST_SCALE = 2.0**16
"""Of what is computed before it is scaled: partial sums must not overflow that did not. Those of
this share of the largest number are the exception that the documentation names."""

_CANCELLATION = 16
"""How much larger shifts may be than the largest sum of them."""


def applied(name: str, values: Array, factor: Array) -> Array:
    """`values` multiplied or divided by `factor`, in their own type."""
    with np.errstate(all="ignore"):
        return np.multiply(values, factor) if name == "mul" else np.divide(values, factor)


def can_scale_weights(name: str, weights: Array, factor: Array, summed: Sequence[int]) -> bool:
    """Whether weights that are scaled are as precise as they were, for all that multiplies them.

    All must be finite. What is below the normal numbers then is a rounding of the largest of the
    weights that are added up with it, along the dims `summed`, which must be normal.
    """
    if weights.dtype.kind not in "fV" or not weights.size:
        return False
    size = np.abs(applied(name, np.ones_like(factor), factor).astype(np.float64))
    if not (size <= LARGEST_SCALE).all():  # NaN is not, either.
        return False
    least, largest = _normal_range(weights.dtype)
    result = np.abs(applied(name, weights, factor))
    if not (result <= largest).all():
        return False
    is_lost = (result < least) & (weights != 0) & (size != 0)
    is_small = result.max(axis=tuple(summed), keepdims=True) < least
    return not (is_lost & is_small).any()


def can_add_first(shifts: Sequence[Array]) -> bool:
    """Whether shifts that are added one after the other may be added up before.

    They are finite, and the largest of their sums is not far smaller than they are.
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
    """The least normal and the largest number of a float type."""
    info = cast(Any, ml_dtypes.finfo(dtype))
    return float(info.smallest_normal), float(info.max)
