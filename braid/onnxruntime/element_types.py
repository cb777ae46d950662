"""Element types as ONNX Runtime writes them: `tensor(float)`, and numbers of ONNX."""

from contextlib import suppress
from typing import Any, cast

import numpy as np

from braid.onnxruntime.errors import WrongTypeError, WrongUseError
from braid.runtime.dtypes import dtype_name, numpy_dtype
from braid.support.errors import BraidError

_NAMES = {"float32": "float", "float64": "double"}
_NUMBERS = 30
"""More than ONNX's `TensorProto.DataType` has."""


def type_text(dtype: str) -> str:
    """Return the type of a tensor of an element type of braid, such as `tensor(float)`."""
    name = _NAMES.get(dtype, dtype)
    return f"tensor({name.replace('float8_', 'float8').replace('float4_', 'float4')})"


def type_of(dtype: "np.dtype[Any]") -> str:
    """Return the type of a tensor of arrays of numpy, which may be none that a model takes."""
    if dtype.kind in "OSU":
        return "tensor(string)"
    swapped = "" if dtype.isnative else " of swapped bytes"
    return f"{type_text(dtype.name)}{swapped}"


def check_elements(dtype: "np.dtype[Any]") -> None:
    """Raise RuntimeError unless arrays of this type can be values."""
    with suppress(WrongTypeError):
        element_number(dtype.name)
        if dtype.isnative:
            return
        raise WrongUseError(
            f"the array is a {type_of(dtype)}",
            hint="bring its elements into this computer's order: .astype(array.dtype.name)",
        )
    raise WrongUseError(
        "Creation of OrtValues is currently only supported from non-string numpy arrays, not "
        f"from {type_of(dtype)}"
    )


def element_dtype(element_type: object) -> np.dtype[Any]:
    """Return the dtype of a type or dtype of numpy, or of ONNX's number of a type.

    Raises:
        RuntimeError: it stands for none, or for texts.

    """
    try:
        if isinstance(element_type, int):
            return numpy_dtype(dtype_name(element_type))
        dtype = np.dtype(cast(Any, element_type))
    except (TypeError, BraidError) as error:
        raise WrongUseError(
            f"element_type is {element_type!r:.200}, expected a type of numpy or a number of "
            "onnx.TensorProto"
        ) from error
    check_elements(dtype)
    return dtype


def element_number(dtype: str) -> int:
    """Return the number of ONNX's `TensorProto.DataType` of an element type of braid."""
    for number in range(1, _NUMBERS):
        try:
            if dtype_name(number) == dtype:
                return number
        except BraidError:
            continue
    raise WrongTypeError(f"ONNX has no element type {dtype}")
