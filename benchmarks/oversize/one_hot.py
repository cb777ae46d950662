"""An embedding as a product with one-hot rows."""

import numpy as np
from onnx import ModelProto, helper

from benchmarks.oversize.case import Array, Dims, model, normal


def build(dims: Dims) -> ModelProto:
    tokens, vocabulary, width = dims["tokens"], dims["vocabulary"], dims["width"]
    nodes = [
        helper.make_node("OneHot", ["ids", "depth", "values"], ["hot"], axis=-1),
        helper.make_node("MatMul", ["hot", "table"], ["y"]),
    ]
    constants = {
        "depth": np.asarray([vocabulary], np.int64),
        "values": np.asarray([0, 1], np.float32),
    }
    inputs = {"ids": [tokens], "table": [vocabulary, width]}
    return model(nodes, inputs, [tokens, width], constants, integers=("ids",))


def make_inputs(dims: Dims) -> list[Array]:
    generator = np.random.default_rng(0)
    ids = generator.integers(0, dims["vocabulary"], dims["tokens"])
    return [ids, normal(dims["vocabulary"], dims["width"])]


def compute_in_pieces(ids: Array, table: Array) -> Array:
    """Compute the rows of the table."""
    return table[ids]
