"""Runs whose outputs are bound to memory."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.onnxruntime.binding import IOBinding
from braid.onnxruntime.errors import WrongUseError
from braid.onnxruntime.values import OrtValue
from braid.runtime.binding import as_array
from braid.runtime.device_arrays import Buffer
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import TensorSpec
from braid.support.errors import BraidError

Run = Callable[[object], Sequence[NDArray[Any]]]
"""Runs a model, with buffers for all outputs or None, and returns the outputs."""


def without_dims(spec: TensorSpec, value: object) -> object:
    """Return the element of a one-element array for an input without dims, as ONNX Runtime does."""
    if spec.shape:
        return value
    try:
        array = as_array(spec, value)
    except BraidError:  # the run reports the error
        return value
    if not isinstance(array, np.ndarray):
        return replace(array, shape=()) if math.prod(array.shape) == 1 else array
    return array.reshape(()) if array.size == 1 else array


def run_on(specs: Sequence[TensorSpec], binding: IOBinding, run: Run) -> list[OrtValue]:
    """Run, and return the outputs that are bound, written to where they are bound.

    The model writes to the caller's memory itself where all outputs are there, or have fixed sizes;
    else results are copied.

    Raises:
        BraidError: no output is bound, or one is where it cannot be written to.

    """
    bound = binding.bound_outputs
    if not bound:
        raise WrongUseError("At least one output should be requested.")
    buffers = [_buffer(spec, bound.get(spec.name)) for spec in specs]
    if any(bound.values()) and all(buffer is not None for buffer in buffers):
        results = run(buffers)
        made = {s.name: result for s, result in zip(specs, results, strict=True)}
        return [value or OrtValue(made[name]) for name, value in bound.items()]
    if binding.is_on_gpu:
        raise WrongUseError(
            "an output is bound to the memory of a GPU, and another of open sizes is not bound",
            hint="bind all outputs to memory",
        )
    made = {spec.name: result for spec, result in zip(specs, run(None), strict=True)}
    return [_written(name, value, made[name]) for name, value in bound.items()]


def _buffer(spec: TensorSpec, value: OrtValue | None) -> Buffer | None:
    """Return where an output is written to; None for an unknown size with nothing bound."""
    if value is not None:
        return value.buffer
    return None if -1 in spec.shape else np.empty(spec.shape, numpy_dtype(spec.dtype))


def _written(name: str, value: OrtValue | None, result: NDArray[Any]) -> OrtValue:
    if value is None:
        return OrtValue(result)
    if value.shape() != list(result.shape):
        raise WrongUseError(
            f"OrtValue shape verification failed. Current shape:{value.shape()} "
            f"Requested shape:{list(result.shape)}",
            hint=f"bind memory of this shape to output '{name}'",
        )
    value.update_inplace(result)
    return value
