"""Checks of the arrays that a user gives to a model."""

import math
import sys
from collections.abc import Sequence
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from braid.runtime.device_arrays import Buffer, DeviceArray, address_of
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import UNBOUNDED, TensorSpec
from braid.support.errors import BraidError

_LINE = 64
"""Bytes of a line of the cache."""
_LARGE = 1 << 20
"""Bytes from which arrays may be written past the caches, where they are aligned to lines."""


def empty_aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of any numbers; a large one begins where a line of the cache does."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    memory = np.empty(size + _LINE, np.uint8)
    return np.ndarray(shape, dtype, cast(Any, memory), -address_of(memory) % _LINE)


def check_count(what: str, actual: int, expected: int) -> None:
    """Raise `BraidError` unless as many arrays as expected were given."""
    if actual != expected:
        raise BraidError(f"the model has {expected} {what}s, got {actual}")


def host_arrays(buffers: Sequence[Buffer], where: str) -> list[NDArray[Any]]:
    """Return the buffers, all of which must be in this computer's memory.

    Raises:
        BraidError: one is not; `where` names the caller that takes no such array, such as `a
        stream`.

    """
    return [_on_host(buffer, where) for buffer in buffers]


def _on_host(buffer: Buffer, where: str) -> NDArray[Any]:
    if isinstance(buffer, DeviceArray):
        raise BraidError(
            f"an array is in the memory of GPU {buffer.device}, expected this computer's, where "
            f"{where} has its inputs and outputs",
            hint="copy it to this computer's memory, as with x.cpu()",
        )
    return buffer


def check_input(spec: TensorSpec, value: NDArray[Any]) -> NDArray[Any]:
    """Return the input as a contiguous array whose elements are aligned, a copy if it is not.

    Raises:
        BraidError: its dtype or shape differs from the spec, or there is no memory for a copy.

    """
    check_kind(spec, value)
    if value.flags.carray:
        return value
    try:
        return np.require(value, requirements=["C", "A"])
    except MemoryError as error:
        raise BraidError(
            f"out of memory: a contiguous copy of input '{spec.name}' takes {value.nbytes} bytes"
        ) from error


def check_kind(spec: TensorSpec, value: Buffer) -> None:
    """Check dtype and shape of an input.

    Raises:
        BraidError: they differ from the spec.

    """
    _check_dtype("input", spec, value, f"convert it with {_conversion(spec.dtype)}")
    if value.shape == spec.shape:
        return
    fits = len(value.shape) == len(spec.shape) and all(
        actual == wanted or (wanted == -1 and actual <= bound)
        for actual, wanted, bound in zip(value.shape, spec.shape, spec.bound, strict=True)
    )
    if not fits:
        raise BraidError(
            f"input '{spec.name}' has shape {value.shape}, expected ({describe_shape(spec)})",
            hint=_shape_hint(spec, value.shape),
        )


def _shape_hint(spec: TensorSpec, shape: tuple[int, ...]) -> str:
    """Return a hint how to turn an array of this shape into one that the input takes."""
    wanted = spec.shape
    if -1 not in wanted and sorted(shape) == sorted(wanted):
        return "its dims are in another order: transpose it"
    if -1 not in wanted and math.prod(shape) == math.prod(wanted):
        return f"it has as many elements: .reshape({wanted})"
    if len(shape) + 1 == len(wanted) and wanted[0] in (-1, 1):
        return "add the first dim: x[None]"
    return "the model is compiled for these sizes; compile it again for others"


def dim_sizes(specs: Sequence[TensorSpec], inputs: Sequence[NDArray[Any]]) -> dict[str, int]:
    """Return the sizes of open dims by name, and those that elements of inputs are.

    Raises:
        BraidError: a dim has two sizes, or an element is negative.

    """
    sizes: dict[str, int] = {}
    for spec, value in zip(specs, inputs, strict=True):
        values = value.reshape(-1).tolist() if spec.values else ()
        for number, size in enumerate(values):
            if size < 0:
                raise BraidError(
                    f"input '{spec.name}': element {number} is {size}, expected a size, at least 0"
                )
        named = (*zip(spec.dims, value.shape, strict=False), *zip(spec.values, values, strict=True))
        for name, size in named:
            if name and sizes.setdefault(name, size) != size:
                raise BraidError(
                    f"dim '{name}' is {size} in input '{spec.name}', and {sizes[name]} in an "
                    "input before it"
                )
    return sizes


def check_output(spec: TensorSpec, buffer: Buffer, shape: tuple[int, ...]) -> None:
    """Check a caller's buffer for an output, which must have this shape.

    Raises:
        BraidError: its dtype or shape is not that of the spec, or it cannot be written in place.

    """
    hint = f"give {_empty(shape, spec.dtype)}, or leave `out` out"
    _check_dtype("the buffer for output", spec, buffer, hint)
    if buffer.shape != shape:
        raise BraidError(
            f"the buffer for output '{spec.name}' has shape {buffer.shape}, expected {shape}",
            hint=hint,
        )
    if isinstance(buffer, DeviceArray):
        return
    flags = buffer.flags
    if not (flags.c_contiguous and flags.writeable and flags.aligned):
        raise BraidError(
            f"the buffer for output '{spec.name}' is not contiguous, aligned and writeable",
            hint="give an array or a tensor as np.empty or torch.empty makes it"
            if "torch" in sys.modules
            else "give an array as np.empty makes it",
        )


def copied_into(
    buffers: list[NDArray[Any]], specs: Sequence[TensorSpec], results: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """Return the caller's buffers for outputs, with the results in them.

    Raises:
        BraidError: one has another dtype or shape than its result, or two share memory.

    """
    for spec, buffer, result in zip(specs, buffers, results, strict=True):
        check_output(spec, buffer, result.shape)
    check_apart(specs, buffers)
    for buffer, result in zip(buffers, results, strict=True):
        np.copyto(buffer, result)
    return buffers


def check_apart(specs: Sequence[TensorSpec], buffers: Sequence[Buffer]) -> None:
    """Check that no two of the buffers for outputs, which are contiguous, share memory.

    Raises:
        BraidError: two do.

    """
    for (one, first), (other, second) in combinations(zip(specs, buffers, strict=True), 2):
        if _share_memory(first, second):
            raise BraidError(
                f"the buffers for outputs '{one.name}' and '{other.name}' share memory",
                hint="give every output a buffer of its own",
            )


def apart_from(buffers: Sequence[Buffer], spec: TensorSpec, value: Buffer) -> Buffer:
    """Return an input unchanged, or a copy if it shares memory with a buffer for an output.

    A model writes to the buffers while it still reads its inputs.

    Raises:
        BraidError: it is in the memory of a GPU, where this makes no copies.

    """
    if not any(_share_memory(value, buffer) for buffer in buffers):
        return value
    if isinstance(value, DeviceArray):
        raise BraidError(
            f"input '{spec.name}' shares memory of GPU {value.device} with an output's buffer",
            hint="give the output a buffer of its own",
        )
    return value.copy()


def _share_memory(one: Buffer, other: Buffer) -> bool:
    """Return whether two buffers may share memory; those in the memory of a GPU are dense."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.may_share_memory(one, other)
    begin = max(address_of(one), address_of(other))
    return begin < min(address_of(one) + one.nbytes, address_of(other) + other.nbytes)


def _conversion(dtype: str) -> str:
    """Return how an array, or a tensor where there may be some, gets an element type."""
    array = f".astype('{dtype}')"
    return f"{array}, or a tensor with .to(torch.{dtype})" if "torch" in sys.modules else array


def _empty(shape: tuple[int, ...], dtype: str) -> str:
    """Return what makes an array, or a tensor where there may be some, for results."""
    array = f"np.empty({shape}, '{dtype}')"
    return (
        f"{array} or torch.empty({shape}, dtype=torch.{dtype})" if "torch" in sys.modules else array
    )


def _check_dtype(what: str, spec: TensorSpec, value: Buffer, hint: str) -> None:
    if value.dtype != numpy_dtype(spec.dtype):
        foreign = "" if value.dtype.isnative else " in the byte order of another machine"
        if value.dtype.kind == "c":
            hint = f"models have no complex numbers: give a part, as x.real.astype('{spec.dtype}')"
        raise BraidError(
            f"{what} '{spec.name}' has dtype {value.dtype.name}{foreign}, expected {spec.dtype}",
            hint=hint,
        )


def describe_shape(spec: TensorSpec, sizes: Sequence[str] = ()) -> str:
    """Return the text of a shape, such as `batch<=4, 3, ?<=8, length`; `sizes` are texts of its
    sizes.
    """
    names = sizes or spec.dims or ("",) * len(spec.shape)
    dims = (
        str(size) if size >= 0 else (name or "?") + ("" if bound == UNBOUNDED else f"<={bound}")
        for size, bound, name in zip(spec.shape, spec.bound, names, strict=True)
    )
    return ", ".join(dims)
