"""Names of element types, as they stand in manifests."""

import functools
from typing import Any, cast

import ml_dtypes
import numpy as np

from braid.support.errors import BraidError

_NUMPY = frozenset(
    {
        *("bool", "float16", "float32", "float64", "complex64", "complex128"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    }
)


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of a manifest's dtype name, numpy's or ml_dtypes'.

    Raises:
        BraidError: neither knows the name as that of a number.

    """
    if name in _NUMPY:
        return np.dtype(name)
    scalar: object = getattr(ml_dtypes, name, None)
    if isinstance(scalar, type) and issubclass(scalar, np.generic):
        return np.dtype(cast(Any, scalar))
    raise BraidError(f"unknown dtype '{name}'")
