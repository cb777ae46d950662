"""Checking the arrays that a function is called with."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.base import fits
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.ports import input_names
from braid.dialects.braid.relayout import Array
from braid.support.errors import BraidError


def ordered_inputs(function: FuncOp, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
    """Return one array for each argument of `function`, with the argument's type.

    Raises BraidError for a wrong number, an unknown or missing name, another shape or dtype.
    """
    names = input_names(function)
    if isinstance(inputs, Mapping):
        unknown, missing = sorted(set(inputs) - set(names)), [n for n in names if n not in inputs]
        if unknown or missing:
            wrong = f"no input '{unknown[0]}'" if unknown else f"'{missing[0]}' is not given"
            raise BraidError(wrong, hint=f"the inputs are {', '.join(names)}")
        arrays = [inputs[name] for name in names]
    else:
        arrays = list(inputs)
    if len(arrays) != len(names):
        raise BraidError(f"got {len(arrays)} inputs, expected {len(names)}: {', '.join(names)}")
    for name, array, type in zip(names, arrays, function.function_type.inputs, strict=True):
        if not isinstance(type, TensorType):
            raise BraidError(f"input '{name}' has type {type}, expected a tensor")
        tensor = cast(TensorType[Any], type)
        dtype, shape = to_numpy(tensor.element_type), tensor.get_shape()
        if array.dtype != dtype or not fits(shape, array.shape):
            raise BraidError(
                f"input '{name}' is {array.dtype}{list(array.shape)}, expected "
                f"{dtype}{['?' if extent == DYNAMIC else extent for extent in shape]}"
            )
    return arrays
