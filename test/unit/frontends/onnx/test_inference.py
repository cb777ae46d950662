"""Nodes that ONNX's own inference rejects are errors, whatever their importers would do.

What braid computes at import is unknown to ONNX, whose rules for constants must not apply to it.
"""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError


def model_of(nodes, x, y, constants=None) -> ModelProto:
    return helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
            [helper.make_tensor_value_info("y", y, None)],
            [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )


def test_an_axis_that_is_given_twice() -> None:
    node = helper.make_node("Slice", ["x", "from", "to", "axes"], ["y"])
    axes = {"from": [0, 0], "to": [1, 1], "axes": [-2, 0]}
    constants = {name: np.array(values) for name, values in axes.items()}
    with pytest.raises(BraidError, match=r"node 'y' \(Slice\): .*Axis 0 is referred to more"):
        import_onnx(model_of([node], [3, 4], TensorProto.FLOAT, constants))


def test_a_constant_made_by_a_node_is_known() -> None:
    nodes = [
        helper.make_node("Constant", [], ["pads"], value_ints=[0, 0, 0, 1, 1, 1, 1, 1]),
        helper.make_node("Pad", ["x", "pads"], ["y"], mode="wrap"),
    ]
    with pytest.raises(BraidError, match=r"node 'y' \(Pad\): .*Expected 2 \* 3 values"):
        import_onnx(model_of(nodes, [2, 3, 4], TensorProto.FLOAT))


def test_a_constant_of_another_name_is_not_what_is_computed() -> None:
    """ONNX has Range refuse constants of one dim, but takes computed ones as ONNX Runtime does."""
    constants = {"zero": np.array([0]), "one": np.array([1]), "first": np.array([3])}
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["count"]),
        helper.make_node("Sub", ["count", "count"], ["begin"]),
        helper.make_node("Div", ["count", "count"], ["step"]),
        helper.make_node("Range", ["begin", "count", "step"], ["y"]),
    ]
    model = model_of(nodes, [3, 4], TensorProto.INT64, constants)
    (found,) = braid.compile(model).run([np.zeros((3, 4), np.float32)])
    np.testing.assert_array_equal(found, [0, 1, 2])
