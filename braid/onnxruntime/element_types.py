"""Element types as ONNX Runtime writes them: `tensor(float)`, and numbers of ONNX."""

from typing import Any, cast

import numpy as np

from braid.onnxruntime.errors import WrongTypeError
from braid.runtime.dtypes import dtype_name, numpy_dtype
from braid.support.errors import BraidError

_NAMES = {"float32": "float", "float64": "double"}
_NUMBERS = 30
"""More than ONNX's `TensorProto.DataType` has."""


def type_text(dtype: str) -> str:
    """Return the type of a tensor of an element type of braid, such as `tensor(float)`."""
    name = _NAMES.get(dtype, dtype)
    return f"tensor({name.replace('float8_', 'float8').replace('float4_', 'float4')})"


def element_dtype(element_type: object) -> np.dtype[Any]:
    """Return the dtype of what stands for it: a type or dtype of numpy, or a number of ONNX.

    Raises:
        WrongTypeError: it stands for none.

    """
    try:
        if isinstance(element_type, int):
            return numpy_dtype(dtype_name(element_type))
        return np.dtype(cast(Any, element_type))
    except (TypeError, BraidError) as error:
        raise WrongTypeError(
            f"element_type is {element_type!r:.200}, expected a type of numpy or a number of "
            "onnx.TensorProto"
        ) from error


def element_number(dtype: str) -> int:
    """Return the number of ONNX's `TensorProto.DataType` of an element type of braid."""
    for number in range(1, _NUMBERS):
        try:
            if dtype_name(number) == dtype:
                return number
        except BraidError:
            continue
    raise WrongTypeError(f"ONNX has no element type {dtype}")
