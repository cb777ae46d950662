"""Convolutions by unsigned weights are exact, with any zero point, and without one."""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid

X = np.random.default_rng(3).integers(0, 256, (1, 6, 7, 5)).astype(np.uint8)


def convolution(weight: np.ndarray, zeros: tuple[int, int] | None, groups: int) -> ModelProto:
    """`ConvInteger` of `X`, with zero points of both operands or without any."""
    constants = [numpy_helper.from_array(weight, "w")]
    if zeros is not None:
        constants += [
            numpy_helper.from_array(np.uint8(zero), name)
            for name, zero in zip(("x_zero", "w_zero"), zeros, strict=True)
        ]
    inputs = ["x", *(constant.name for constant in constants if constant.name == "w")]
    inputs += [constant.name for constant in constants if constant.name != "w"]
    graph = helper.make_graph(
        [helper.make_node("ConvInteger", inputs, ["y"], group=groups)],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def reference(weight: np.ndarray, zeros: tuple[int, int], groups: int) -> np.ndarray:
    """Return the sums of all windows, by definition."""
    x, w = X.astype(np.int64) - zeros[0], weight.astype(np.int64) - zeros[1]
    filters, depth, height, width = w.shape
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (height, width), (1, 2))
    parts = [
        np.einsum("fchw,cyxhw->fyx", own, windows[g * depth : (g + 1) * depth])
        for g, own in enumerate(np.split(w, groups))
    ]
    assert filters == sum(len(part) for part in parts)
    return np.concatenate(parts)[None].astype(np.int32)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("zeros", [None, (0, 0), (7, 0), (0, 128), (200, 33)])
@pytest.mark.parametrize("window", [(1, 1), (3, 2)])
def test_sums(groups: int, zeros: tuple[int, int] | None, window: tuple[int, int]) -> None:
    shape = (32, 6 // groups, *window)
    weight = np.random.default_rng(4).integers(0, 256, shape).astype(np.uint8)
    model = braid.compile(convolution(weight, zeros, groups))
    np.testing.assert_array_equal(model(X), reference(weight, zeros or (0, 0), groups))
