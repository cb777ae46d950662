"""Indices outside of their dims are the nearest inside, compiled and interpreted."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

import braid
from braid.interpreted import interpret

X = np.arange(12, dtype=np.float32).reshape(4, 3)
INDICES = np.array([0, -1, 4, -5, 100, -100, 2**40, -(2**63)])
NEAREST = [0, 3, 3, 0, 3, 0, 3, 0]
CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any], Any]] = {
    "Gather": ((INDICES,), {}, X[NEAREST]),
    "GatherElements": ((INDICES[:, None],), {}, X[NEAREST, :1]),
    "GatherND": ((np.array([[4, 0], [-5, 1], [0, 3], [0, -4]]),), {}, np.float32([9, 1, 2, 0])),
    "ScatterElements": (
        (np.array([[4, -5, 1]]), np.full((1, 3), 50, np.float32)),
        {"reduction": "add"},
        X + 50 * np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]], np.float32),
    ),
    "ScatterND": (
        (np.array([[7], [-9]]), np.full((2, 3), 50, np.float32)),
        {"reduction": "add"},
        X + 50 * np.array([[1], [0], [0], [1]], np.float32),
    ),
}


@pytest.mark.parametrize("op", CASES)
def test_the_nearest_index_inside(op: str) -> None:
    """ONNX calls such an index an error, and does not define the result."""
    operands, attributes, expected = CASES[op]
    inputs = dict(zip("xiu", (X, *operands), strict=False))
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in inputs.items()
    ]
    result = helper.make_tensor_value_info("y", 1, expected.shape)
    graph = helper.make_graph(
        [helper.make_node(op, list(inputs), ["y"], **attributes)], "g", values, [result]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    for run in (interpret(model), braid.compile(model, jobs=1)):
        (found,) = run.run_named(inputs).values()
        np.testing.assert_array_equal(found, expected)
