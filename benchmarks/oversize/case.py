"""A model of the oversize suite, and the functions that build it and its reference."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
Dims = Mapping[str, int]
Reference = Callable[..., Array]

_PIECE = 256
"""Rows of a piece."""


@dataclass(frozen=True)
class Case:
    """A model by the dims of its tensors, and its meaning computed in pieces by numpy.

    `huge` are dims at which the tensors inside are far larger than all inputs and results,
    `fits` such that all is held in memory, `small` for tests. `pieces` computes the result from
    the inputs without ever holding a whole tensor from inside.
    """

    name: str
    build: Callable[[Dims], onnx.ModelProto]
    inputs: Callable[[Dims], list[Array]]
    pieces: Reference
    huge: Dims
    fits: Dims
    small: Dims


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    output: Sequence[int],
    constants: Mapping[str, Array] | None = None,
    integers: Sequence[str] = (),
) -> onnx.ModelProto:
    """Return a model whose result is `y`; `integers` are inputs of i64, the others are of f32."""
    values = [
        helper.make_tensor_value_info(
            name, TensorProto.INT64 if name in integers else TensorProto.FLOAT, shape
        )
        for name, shape in inputs.items()
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, output)
    initial = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "oversize", values, [result], initial)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def normal(*shape: int, seed: int = 0) -> Array:
    """Values of the standard normal distribution, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def by_rows(x: Array, compute: Callable[[Array], Array]) -> Array:
    """`compute` on pieces of the rows of `x`, joined."""
    pieces = [compute(x[start : start + _PIECE]) for start in range(0, len(x), _PIECE)]
    return np.concatenate(pieces)
