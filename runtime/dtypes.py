"""Names of element types, as they stand in manifests, and their numbers in descriptors."""

import functools
from typing import Any, cast

import numpy as np

from braid.support.errors import BraidError

_NUMPY = frozenset(
    {
        *("bool", "float16", "float32", "float64", "complex64", "complex128"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    }
)
_BY_NUMBER = (
    *("", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "", "bool"),
    *("float16", "float64", "uint32", "uint64", "complex64", "complex128", "bfloat16"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "uint4", "int4"),
    *("float4_e2m1fn", "float8_e8m0fnu", "uint2", "int2", "float6_e2m3fn", "float6_e3m2fn"),
)
"""Names by ONNX's `TensorProto.DataType`, empty for types that are not numeric."""


def dtype_name(number: int) -> str:
    """Return the name of the element type that a descriptor gives by its number in ONNX.

    Raises:
        BraidError: there is no such element type.

    """
    if not 0 < number < len(_BY_NUMBER) or not _BY_NUMBER[number]:
        raise BraidError(f"unknown element type {number}, expected a number of ONNX's TensorProto")
    return _BY_NUMBER[number]


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of a manifest's dtype name, numpy's or ml_dtypes'.

    Raises:
        BraidError: neither knows the name as that of a number, or ml_dtypes is not installed.

    """
    if name in _NUMPY:
        return np.dtype(name)
    try:
        import ml_dtypes  # only for the types that numpy lacks, and not everywhere installed
    except ImportError as error:
        raise BraidError(
            f"dtype '{name}' needs the package ml_dtypes, which is not installed",
            hint="pip install ml-dtypes",
        ) from error
    scalar: object = getattr(ml_dtypes, name, None)
    if isinstance(scalar, type) and issubclass(scalar, np.generic):
        return np.dtype(cast(Any, scalar))
    raise BraidError(f"unknown dtype '{name}'")
