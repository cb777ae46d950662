"""Random models with open dims: drawn ones with symbols in place of extents of their inputs."""

import random
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto

from benchmarks.generators.random_models import Draft

Inputs = dict[str, NDArray[Any]]

SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17, 33)
"""Sizes of dims: vectors' lengths, and neighbouring sizes."""
MOST_ELEMENTS = 50_000
ATTEMPTS = 30


@dataclass(frozen=True)
class OpenGraph:
    """A model with open dims, and inputs of several sizes that ONNX Runtime accepts."""

    model: ModelProto
    runs: list[Inputs]


def opened(draft: Draft, choice: random.Random, most_runs: int = 4) -> OpenGraph:
    """Return a draft with open dims: equal extents of inputs get one symbol, or stay fixed.

    The first inputs are the draft's own. If ONNX Runtime lacks a kernel for an op of the model,
    they are the only results.
    """
    model = draft.model()
    extents = sorted({extent for array in draft.inputs.values() for extent in array.shape})
    symbols = {extent: f"d{extent}" for extent in extents if choice.random() < 0.7}
    for port in model.graph.input:
        for dim in port.type.tensor_type.shape.dim:
            if dim.dim_value in symbols:
                dim.dim_param = symbols[dim.dim_value]
    for port in model.graph.output:
        port.type.tensor_type.ClearField("shape")
    runs = [{port.name: draft.inputs[port.name] for port in model.graph.input}]
    session = _session(model)
    for _ in range(ATTEMPTS if session is not None and symbols else 0):
        sizes = {extent: choice.choice(SIZES) for extent in symbols}
        shapes = [[sizes.get(d, d) for d in array.shape] for array in draft.inputs.values()]
        if sum(map(prod, shapes)) > MOST_ELEMENTS:
            continue
        inputs = {name: _resized(array, sizes, choice) for name, array in runs[0].items()}
        if _accepts(session, inputs):
            runs.append(inputs)
        if len(runs) == most_runs:
            break
    return OpenGraph(model, runs)


def _session(model: ModelProto) -> onnxruntime.InferenceSession | None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options)
    except Exception:  # of many types, none of which it documents
        return None


def _accepts(session: onnxruntime.InferenceSession | None, inputs: Inputs) -> bool:
    try:
        return session is not None and session.run(None, inputs) is not None
    except Exception:
        return False


def _resized(array: NDArray[Any], sizes: dict[int, int], choice: random.Random) -> NDArray[Any]:
    """Return elements of an array in random order, at other extents; zeros if it has none."""
    shape = [sizes.get(extent, extent) for extent in array.shape]
    pool = array.reshape(-1) if array.size else np.zeros(1, array.dtype)
    places = np.random.default_rng(choice.randrange(2**32)).integers(0, pool.size, shape)
    return pool[places]
