"""A convolution as a product with unfolded windows."""

import numpy as np
from onnx import ModelProto, NodeProto, helper

from benchmarks.oversize.case import Array, Dims, model, normal


def build(dims: Dims) -> ModelProto:
    """All 3×3 windows of an image, side by side, times one matrix."""
    channels, filters, extent = dims["channels"], dims["filters"], dims["extent"]
    nodes: list[NodeProto] = []
    constants: dict[str, Array] = {"axes": np.asarray([1, 2], np.int64)}
    parts: list[str] = []
    for row in range(3):
        for column in range(3):
            part = f"window{row}{column}"
            constants[f"{part}.start"] = np.asarray([row, column], np.int64)
            constants[f"{part}.end"] = np.asarray([row + extent, column + extent], np.int64)
            names = ["x", f"{part}.start", f"{part}.end", "axes"]
            nodes.append(helper.make_node("Slice", names, [part]))
            parts.append(part)
    constants["flat"] = np.asarray([extent * extent, 9 * channels], np.int64)
    nodes += [
        helper.make_node("Concat", parts, ["windows"], axis=3),
        helper.make_node("Reshape", ["windows", "flat"], ["unfolded"]),
        helper.make_node("MatMul", ["unfolded", "w"], ["y"]),
    ]
    inputs = {"x": [1, extent + 2, extent + 2, channels], "w": [9 * channels, filters]}
    return model(nodes, inputs, [extent * extent, filters], constants)


def make_inputs(dims: Dims) -> list[Array]:
    channels, extent = dims["channels"], dims["extent"]
    weights = normal(9 * channels, dims["filters"], seed=1)
    return [normal(1, extent + 2, extent + 2, channels), weights]


def compute_in_pieces(x: Array, w: Array) -> Array:
    """Compute a 3×3 convolution, row by row."""
    extent, channels = x.shape[1] - 2, x.shape[3]
    filters = w.reshape(3, 3, channels, -1)
    rows: list[Array] = []
    for row in range(extent):
        total = np.zeros((extent, w.shape[1]), np.float32)
        for i, j in np.ndindex(3, 3):
            total += x[0, row + i, j : j + extent] @ filters[i, j]
        rows.append(total)
    return np.concatenate(rows)
