"""Squared distances by differences: all pairs, coordinate by coordinate."""

import numpy as np
from onnx import ModelProto, helper

from benchmarks.oversize.case import Array, Dims, by_rows, model, normal


def build(dims: Dims) -> ModelProto:
    """Every point less every centre, squared, summed over the coordinates."""
    points, centres, depth = dims["points"], dims["centres"], dims["depth"]
    nodes = [
        helper.make_node("Unsqueeze", ["x", "one"], ["rows"]),
        helper.make_node("Unsqueeze", ["c", "zero"], ["columns"]),
        helper.make_node("Sub", ["rows", "columns"], ["differences"]),
        helper.make_node("Mul", ["differences", "differences"], ["squares"]),
        helper.make_node("ReduceSum", ["squares", "last"], ["y"], keepdims=0),
    ]
    constants = {
        "zero": np.asarray([0], np.int64),
        "one": np.asarray([1], np.int64),
        "last": np.asarray([2], np.int64),
    }
    inputs = {"x": [points, depth], "c": [centres, depth]}
    return model(nodes, inputs, [points, centres], constants)


def make_inputs(dims: Dims) -> list[Array]:
    depth = dims["depth"]
    return [normal(dims["points"], depth), normal(dims["centres"], depth, seed=1)]


def compute_in_pieces(x: Array, c: Array) -> Array:
    """Squared distances from every row of `x` to every row of `c`."""
    return by_rows(x, lambda part: np.square(part[:, None] - c[None]).sum(axis=2))
