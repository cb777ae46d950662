"""Explain why a run or a compilation is refused, as users of ONNX Runtime know it."""

from collections.abc import Collection, Sequence
from typing import Any, cast

import numpy as np

from braid.onnxruntime.element_types import type_of, type_text
from braid.onnxruntime.errors import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    NotImplementedStatus,
    OrtError,
)
from braid.runtime.device_arrays import DeviceArray
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import TensorSpec
from braid.support.errors import BraidError, InfeasibleError, UnsupportedError, did_you_mean

_FIX = "Please fix either the inputs/outputs or the model."


def refused_model(error: BraidError) -> OrtError:
    """Return the exception for a model that cannot be compiled, with the op or place.

    An error without a place in the model is due to this machine.
    """
    if isinstance(error, OrtError):
        return error
    kind = InvalidGraph if error.location is not None else Fail
    if isinstance(error, UnsupportedError):
        kind = NotImplementedStatus
    elif isinstance(error, InfeasibleError):
        kind = Fail
    return kind(error.message, location=error.location, hint=error.hint, notes=error.notes)


def refused_run(
    specs: Sequence[TensorSpec], values: Sequence[object], error: BraidError
) -> BraidError:
    """Return the exception for a run that has failed with `error` on these inputs."""
    for spec, value in zip(specs, values, strict=True):
        found = _wrong_input(spec, value)
        if found is not None:
            return found
    return Fail(error.message, hint=error.hint)


def refused_name(what: str, name: object, known: Collection[str]) -> InvalidArgument:
    """Return the exception for the name of an input or output that the model does not have."""
    space = "" if what == "output" else " "  # as ONNX Runtime writes it
    return InvalidArgument(
        f"Invalid {what} name:{space}{name}",
        hint=did_you_mean(str(name), known) or f"the {what}s are {', '.join(known) or 'none'}",
    )


def _wrong_input(spec: TensorSpec, value: object) -> InvalidArgument | None:
    """Return the error in an input; None if its type and shape fit, or it is no array."""
    if value is None:
        return None
    if isinstance(value, DeviceArray):
        dtype, shape = value.dtype, value.shape
    else:
        try:
            given = hasattr(value, "dtype") or hasattr(value, "__array__")
            array = np.asarray(cast(Any, value), None if given else numpy_dtype(spec.dtype))
        except (TypeError, ValueError, OverflowError, RuntimeError):
            return None
        dtype, shape = array.dtype, array.shape
    if dtype != numpy_dtype(spec.dtype):
        return InvalidArgument(
            f"Unexpected input data type. Actual: ({type_of(dtype)}) , "
            f"expected: ({type_text(spec.dtype)})",
            hint=f"convert input '{spec.name}' with .astype('{spec.dtype}')",
        )
    if len(shape) != len(spec.shape):
        return InvalidArgument(
            f"Invalid rank for input: {spec.name} Got: {len(shape)} Expected: {len(spec.shape)} "
            f"{_FIX}"
        )
    wrong = "".join(
        f" index: {index} Got: {size} Expected: {wanted}\n"
        for index, (size, wanted) in enumerate(zip(shape, spec.shape, strict=True))
        if wanted not in (-1, size)
    )
    if not wrong:
        return None
    return InvalidArgument(
        f"Got invalid dimensions for input: {spec.name} for the following indices\n{wrong} {_FIX}"
    )
