"""Checks of the arrays that a user gives to a model."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import TensorSpec
from braid.support.errors import BraidError


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
            f"input '{spec.name}' has shape {value.shape}, expected ({describe_shape(spec)})"
        )
    return np.asarray(value, order="C")  # ascontiguousarray would give a scalar a dim


def check_output(spec: TensorSpec, buffer: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Check a caller's buffer for an output, which must have this shape.

    Raises:
        BraidError: its dtype or shape is not that of the spec, or it cannot be written in place.

    """
    _check_dtype("output", spec, buffer)
    if buffer.shape != shape:
        raise BraidError(
            f"the buffer for output '{spec.name}' has shape {buffer.shape}, expected {shape}"
        )
    if not (buffer.flags.c_contiguous and buffer.flags.writeable):
        raise BraidError(f"the buffer for output '{spec.name}' is not contiguous and writeable")


def check_apart(specs: Sequence[TensorSpec], buffers: Sequence[NDArray[Any]]) -> None:
    """Check that no two of the buffers for outputs, which are contiguous, share memory.

    Raises:
        BraidError: two do.

    """
    for (one, first), (other, second) in combinations(zip(specs, buffers, strict=True), 2):
        if np.may_share_memory(first, second):
            raise BraidError(
                f"the buffers for outputs '{one.name}' and '{other.name}' share memory",
                hint="give every output a buffer of its own",
            )


def apart_from(buffers: Sequence[NDArray[Any]], value: NDArray[Any]) -> NDArray[Any]:
    """Return an input as it is, or a copy where it shares memory with a buffer for an output.

    A model writes to the buffers while it still reads its inputs.
    """
    return value.copy() if any(np.may_share_memory(value, b) for b in buffers) else value


def _check_dtype(what: str, spec: TensorSpec, value: NDArray[Any]) -> None:
    if value.dtype != numpy_dtype(spec.dtype):
        foreign = "" if value.dtype.isnative else " in the byte order of another machine"
        raise BraidError(
            f"{what} '{spec.name}' has dtype {value.dtype.name}{foreign}, expected {spec.dtype}",
            hint=f"convert it with .astype('{spec.dtype}')",
        )


def describe_shape(spec: TensorSpec) -> str:
    """Text of a shape, such as `batch<=4, 3, ?<=8`."""
    names = spec.dims or ("",) * len(spec.shape)
    dims = (
        str(size) if size >= 0 else f"{name or '?'}<={bound}"
        for size, bound, name in zip(spec.shape, spec.bound, names, strict=True)
    )
    return ", ".join(dims)
