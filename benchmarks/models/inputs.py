"""Seeded random inputs for a model."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

TOKENS = 30000
"""Integer inputs are token ids below this; scalars are small counts."""


def random_inputs(path: Path, seed: int = 1) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """An array for every input of the model at `path`, all of whose dims are given."""
    graph = onnx.load(path, load_external_data=False).graph
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
        else:
            arrays[value.name] = rng.integers(0, TOKENS if shape else 8, shape).astype(dtype)
    return arrays
