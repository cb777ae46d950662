"""Checks of the arrays that a user gives to a model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.errors import BraidError
from braid.runtime.artifact import numpy_dtype
from braid.runtime.manifest import TensorSpec


def check_count(what: str, actual: int, expected: int) -> None:
    """Raise `BraidError` unless as many arrays as expected were given."""
    if actual != expected:
        raise BraidError(f"the model has {expected} {what}s, got {actual}")


def check_input(spec: TensorSpec, value: NDArray[Any]) -> NDArray[Any]:
    """Return the input as a contiguous array.

    Raises:
        BraidError: its dtype or shape is not that of the spec.

    """
    _check_dtype("input", spec, value)
    fits = len(value.shape) == len(spec.shape) and all(
        actual == wanted or (wanted == -1 and actual <= bound)
        for actual, wanted, bound in zip(value.shape, spec.shape, spec.bound, strict=True)
    )
    if not fits:
        raise BraidError(
            f"input '{spec.name}' has shape {value.shape}, expected {_describe_shape(spec)}"
        )
    return np.asarray(value, order="C")  # ascontiguousarray would give a scalar a dim


def check_output(spec: TensorSpec, buffer: NDArray[Any]) -> None:
    """Check a caller's buffer for an output.

    Raises:
        BraidError: its dtype or shape is not that of the spec, or it cannot be written in place.

    """
    _check_dtype("output", spec, buffer)
    if buffer.shape != spec.bound:
        raise BraidError(
            f"the buffer for output '{spec.name}' has shape {buffer.shape}, expected {spec.bound}"
        )
    if not (buffer.flags.c_contiguous and buffer.flags.writeable):
        raise BraidError(f"the buffer for output '{spec.name}' is not contiguous and writeable")


def _check_dtype(what: str, spec: TensorSpec, value: NDArray[Any]) -> None:
    if value.dtype != numpy_dtype(spec.dtype):
        raise BraidError(
            f"{what} '{spec.name}' has dtype {value.dtype.name}, expected {spec.dtype}",
            hint=f"convert it with .astype('{spec.dtype}')",
        )


def _describe_shape(spec: TensorSpec) -> str:
    dims = (
        str(size) if size >= 0 else f"?<={bound}"
        for size, bound in zip(spec.shape, spec.bound, strict=True)
    )
    return f"({', '.join(dims)})"
