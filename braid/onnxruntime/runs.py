"""Runs whose outputs are bound to memory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.onnxruntime.binding import IOBinding
from braid.onnxruntime.errors import WrongUseError
from braid.onnxruntime.values import OrtValue
from braid.runtime.device_arrays import Buffer
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import TensorSpec

Run = Callable[[object], Sequence[NDArray[Any]]]
"""Runs a model, with buffers for all outputs or None, and returns the outputs."""


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
    """Where an output is written to; None where its size is not known and nothing is bound."""
    if value is not None:
        return value.buffer
    return None if -1 in spec.shape else np.empty(spec.shape, numpy_dtype(spec.dtype))


def _written(name: str, value: OrtValue | None, result: NDArray[Any]) -> OrtValue:
    if value is None:
        return OrtValue(result)
    value.update_inplace(result)
    return value
