"""Tensors of PyTorch as arrays and back, on the same memory; this does not import PyTorch."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from braid.runtime.dtypes import numpy_dtype
from braid.support.errors import BraidError

Array = NDArray[Any]

# numpy has no such types of its own, so that elements pass as integers of the same size.
_INTEGERS = {2: "int16", 1: "uint8"}
_FOREIGN = {
    "bfloat16": "bfloat16",
    **{
        f"float8_{name}": f"float8_{name}"
        for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
    },
}


def is_tensor(value: object) -> bool:
    """Return whether a value is a tensor of PyTorch, which then has been imported by its owner."""
    torch = sys.modules.get("torch")
    kind = None if torch is None else getattr(torch, "Tensor", None)
    return kind is not None and isinstance(value, kind)


def any_tensor(values: Iterable[object]) -> bool:
    """Return whether a value, or one of a mapping's, is a tensor of PyTorch."""
    if "torch" not in sys.modules:
        return False
    return any(
        any_tensor(cast(Mapping[str, object], value).values())
        if isinstance(value, Mapping)
        else is_tensor(value)
        for value in values
    )


def array_of(tensor: Any) -> Array:
    """View a tensor in this computer's memory; one that is stored conjugated or negated is copied.

    Raises:
        TypeError: it is elsewhere, or numpy and ml_dtypes have no such layout or type.
        RuntimeError: it has no memory.

    """
    plain = tensor.detach().resolve_conj().resolve_neg()
    name = _FOREIGN.get(str(tensor.dtype).removeprefix("torch."))
    if name is None:
        return plain.numpy()
    dtype = numpy_dtype(name)
    torch = sys.modules["torch"]
    return plain.view(getattr(torch, _INTEGERS[dtype.itemsize])).numpy().view(dtype)


def tensor_of(array: Array) -> Any:
    """Return a tensor on the memory of an array.

    Raises:
        BraidError: PyTorch has no such element type.

    """
    torch: Any = sys.modules["torch"]
    name = array.dtype.name
    try:
        if not array.size:  # whose strides are 0 in numpy, and as if they held elements here
            return torch.empty(array.shape, dtype=getattr(torch, name))
        if name not in _FOREIGN:
            return torch.from_numpy(array)
        integers = np.dtype(_INTEGERS[array.dtype.itemsize])
        return torch.from_numpy(array.view(integers)).view(getattr(torch, name))
    except (TypeError, AttributeError) as error:
        raise BraidError(
            f"an output is {name}, which is no element type of PyTorch",
            hint="give the inputs as numpy arrays, so that the outputs are such as well",
        ) from error


def array_to_write(what: str, tensor: Any) -> Array:
    """View a tensor that results are written to; `what` is the tensor in messages.

    Raises:
        BraidError: it is not in this computer's memory, is stored conjugated or negated, or
            requires a gradient where gradients are recorded.

    """
    torch: Any = sys.modules["torch"]
    if tensor.requires_grad and torch.is_grad_enabled():
        raise BraidError(
            f"{what} requires a gradient, expected a tensor that may be overwritten",
            hint="call the model within torch.no_grad(), or give x.detach()",
        )
    try:
        array = array_of(tensor)
    except (TypeError, RuntimeError) as error:
        raise BraidError(
            f"{what} is no dense tensor in this computer's memory: {error}",
            hint="give one as torch.empty makes it",
        ) from error
    if tensor.is_conj() or tensor.is_neg():
        raise BraidError(
            f"{what} is stored conjugated or negated, expected memory that results are written to",
            hint="give one as torch.empty makes it",
        )
    return array


def written(given: object, array: Array) -> Any:
    """Return the caller's object for an output; `array` is the filled part of it."""
    if not is_tensor(given):
        return array
    tensor = cast(Any, given)
    if not tensor.is_inference():
        # Autograd then notices that a tensor that it may have saved has changed.
        sys.modules["torch"].autograd.graph.increment_version(tensor)
    whole = array.shape == tuple(tensor.shape)
    return tensor if whole else tensor_of(array)
