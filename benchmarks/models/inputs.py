"""Seeded random inputs for a model."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

TOKENS = 30000
"""Integer inputs are token ids below this; scalars are small counts."""

_TRUE = 0.8
"""The share of truth values that are true."""


def random_inputs(path: Path, seed: int = 1) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Return an array for each input of the model at `path`, whose dims must all be fixed.

    Truth values are mostly true, and the first of each row always, so that no mask hides all.
    """
    graph = onnx.load(path, load_external_data=False).graph  # pyright: ignore[reportUnknownMemberType]
    initialized = {tensor.name for tensor in graph.initializer}
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    for value in graph.input:
        if value.name in initialized:
            continue
        tensor = value.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        if dtype.kind == "f" or dtype == ml_dtypes.bfloat16:
            arrays[value.name] = rng.standard_normal(shape).astype(dtype)
        elif dtype.kind == "b" and shape:
            arrays[value.name] = rng.random(shape) < _TRUE
            arrays[value.name][..., :1] = True
        else:
            arrays[value.name] = rng.integers(0, TOKENS if shape else 8, shape).astype(dtype)
    return arrays
