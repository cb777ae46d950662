"""From the arguments of a call to the arrays of a model's inputs and outputs."""

import math
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from braid.runtime.device_arrays import Buffer, DeviceArray, array_on_gpu, is_on_gpu
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import TensorSpec
from braid.runtime.torch_tensors import array_of, array_to_write, is_tensor
from braid.support.errors import BraidError, did_you_mean

Array = NDArray[Any]

_ARRAYS = {np.ndarray}


def bind_inputs(
    specs: Sequence[TensorSpec],
    positional: Sequence[object],
    named: Mapping[str, object],
    no_arrays: Container[str] = (),
    drawn: Container[str] = (),
) -> list[Buffer]:
    """Return one array per input, in the model's order.

    A mapping that is all that is given by position has inputs by name. Values for inputs named in
    `no_arrays`, which are text or mappings, are returned as they are. Random bits stand for inputs
    named in `drawn` that are left out.

    Raises:
        BraidError: an input that is missing, given twice or unknown, or that is not an array.

    """
    # The usual call, found in few steps: small models' calls consist of these.
    are_all = not named and not no_arrays and len(positional) == len(specs)
    if are_all and set(map(type, positional)) == _ARRAYS:
        return list(cast(Sequence[Buffer], positional))

    def bound(spec: TensorSpec, value: object) -> Buffer:
        return cast(Buffer, value) if spec.name in no_arrays else as_array(spec, value)

    if len(positional) == 1 and _has_names(positional[0], specs, no_arrays):
        mapping = positional[0]
        if twice := [name for name in named if name in mapping]:
            raise BraidError(f"input '{twice[0]}' is given in the mapping and by keyword")
        positional, named = (), {**mapping, **named}
    if not named and len(positional) == len(specs):
        return list(map(bound, specs, positional))
    if not positional and len(named) == len(specs) and all(s.name in named for s in specs):
        return [bound(spec, named[spec.name]) for spec in specs]
    names = [spec.name for spec in specs]
    if len(positional) > len(specs):
        raise BraidError(
            f"the model has {len(specs)} inputs, got {len(positional)} positional arguments",
            hint=f"the inputs are {_listed(names)}",
        )
    given = dict(zip(names, positional, strict=False))
    for name, value in named.items():
        if name not in names:
            hint = did_you_mean(str(name), names) or f"the inputs are {_listed(names)}"
            raise BraidError(f"the model has no input '{name}'", hint=hint)
        if name in given:
            raise BraidError(
                f"input '{name}' is given by position and by name", hint="give it once"
            )
        given[name] = value
    given |= {s.name: _drawn(s) for s in specs if s.name in drawn and s.name not in given}
    missing = [name for name in names if name not in given]
    if missing:
        raise BraidError(
            f"no value for {'input' if len(missing) == 1 else 'inputs'} {_listed(missing)}",
            hint=f"the inputs are {_listed(names)}",
        )
    return [bound(spec, given[spec.name]) for spec in specs]


def _drawn(spec: TensorSpec) -> Array:
    """Return random bits of the operating system for an input, whose shape is known."""
    dtype = numpy_dtype(spec.dtype)
    bits = os.urandom(math.prod(spec.shape) * dtype.itemsize)
    return np.frombuffer(bits, dtype).reshape(spec.shape)


def _has_names(
    value: object, specs: Sequence[TensorSpec], no_arrays: Container[str]
) -> TypeGuard[Mapping[str, object]]:
    """Return whether a mapping has inputs by name, and is not itself the only input."""
    if not isinstance(value, Mapping):
        return False
    return len(specs) != 1 or specs[0].name not in no_arrays or specs[0].name in value


def in_order(what: str, values: object) -> Sequence[object]:
    """Return a sequence of values; raises BraidError for a mapping, or a value that is no
    sequence."""
    if isinstance(values, list | tuple):
        return cast(Sequence[object], values)
    kind = type(values).__name__
    is_one = isinstance(values, Mapping | str | bytes | np.ndarray)
    if is_one or not isinstance(values, Iterable):
        raise BraidError(
            f"{what} are a {kind}, expected a sequence in the model's order",
            hint="such as [x]; run_named takes inputs by name"
            if isinstance(values, Mapping)
            else "such as [x]",
        )
    return list(cast(Iterable[object], values))


def outputs_in_order(specs: Sequence[TensorSpec], out: object) -> list[object]:
    """Return the caller's buffers unchanged, in the model's order.

    `out` is one array where there is one output, a sequence in the model's order, or a mapping by
    name; all outputs are given, or none.

    Raises:
        BraidError: a wrong number of buffers, or a wrong name.

    """
    names = [spec.name for spec in specs]
    if isinstance(out, np.ndarray) or hasattr(out, "__dlpack__"):
        buffers: list[object] = [out]
    elif isinstance(out, Mapping):
        by_name = cast(Mapping[str, object], out)
        if set(by_name) != set(names):
            raise BraidError(
                f"buffers are given for {_listed(by_name)}, expected one for each output: "
                f"{_listed(names)}",
                hint="a mapping has a buffer for every output, by its name",
            )
        buffers = [by_name[name] for name in names]
    else:
        buffers = list(in_order("buffers for outputs", out))
    if len(buffers) != len(specs):
        raise BraidError(
            f"the model has {len(specs)} output{'s' * (len(specs) != 1)}, got {len(buffers)} "
            f"buffer{'s' * (len(buffers) != 1)}",
            hint=f"give an array for each of {_listed(names)}",
        )
    return buffers


def bind_outputs(specs: Sequence[TensorSpec], given: Sequence[object]) -> list[Buffer]:
    """View the caller's buffers, which are in the model's order.

    Raises:
        BraidError: one is neither a numpy array, nor a tensor of PyTorch, nor in the memory of a
            GPU.

    """
    return [_as_buffer(spec, buffer) for spec, buffer in zip(specs, given, strict=True)]


def _as_buffer(spec: TensorSpec, buffer: object) -> Buffer:
    what = f"the buffer for output '{spec.name}'"
    if isinstance(buffer, np.ndarray | DeviceArray):
        return cast(Buffer, buffer)
    if is_on_gpu(buffer):
        return array_on_gpu(what, buffer, written=True)
    if is_tensor(buffer):
        return array_to_write(what, buffer)
    raise BraidError(
        f"{what} is a {type(buffer).__name__}, expected a numpy array, a tensor of PyTorch, or an "
        "array in the memory of a GPU"
    )


def as_array(spec: TensorSpec, value: object) -> Buffer:
    """View `value` as an array, without a copy where its memory can be shared.

    Arrays keep their dtype (a wrong one is an error later); python's numbers and lists of them take
    the dtype of the input.

    Raises:
        BraidError: the value is not an array, or one on a device that is not a GPU of CUDA.

    """
    if isinstance(value, np.ndarray | DeviceArray):
        return cast(Buffer, value)
    if value is None:
        raise BraidError(
            f"input '{spec.name}' is None, expected an array of {spec.dtype}",
            hint="a model has no inputs that may be left out: give all of them",
        )
    if is_on_gpu(value):
        return array_on_gpu(f"input '{spec.name}'", value, written=False)
    try:
        if is_tensor(value):  # whose DLPack refuses those that require a gradient, and bfloat16
            return array_of(value)
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(value)
        if hasattr(value, "__array__"):
            return np.asarray(value)
        return _of_numbers(value, numpy_dtype(spec.dtype))
    except (TypeError, ValueError, OverflowError, RuntimeError, BufferError) as error:
        raise BraidError(
            f"input '{spec.name}' is a {type(value).__name__} that is not an array in this "
            f"computer's memory: {error}",
            hint="give a numpy array, or an object with __dlpack__ or __array__",
        ) from error


def _of_numbers(value: object, dtype: np.dtype[Any]) -> Array:
    """Return Python's numbers as an array; numpy would take text, and None as a float, for numbers
    too.
    """
    found = np.asarray(value)
    if found.dtype.kind in "SU" or (
        found.dtype.kind == "O" and any(one is None for one in found.flat)
    ):
        raise TypeError("not all of it are numbers")
    return np.asarray(value, dtype=dtype)  # which refuses what is out of its bounds


def _from_dlpack(value: Any) -> Array:
    try:
        return np.from_dlpack(value)
    except (TypeError, ValueError, RuntimeError, BufferError):
        if not hasattr(value, "__array__"):
            raise
        return np.asarray(value)  # such as bfloat16, which numpy's DLPack does not take


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
