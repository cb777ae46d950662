"""A small ONNX model, for tests of the compiled model."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def sum_model(
    weight: float, *, rows: int | str = 2, op: str = "Add", domain: str = ""
) -> onnx.ModelProto:
    """Return a model that adds 64 weights to each row of its input, by an op of that name."""
    weights = numpy_helper.from_array(np.full(64, weight, np.float32), "w")
    value, result = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 64]) for name in "xy"
    )
    node = helper.make_node(op, ["x", "w"], ["y"], domain=domain)
    graph = helper.make_graph([node], "sum", [value], [result], [weights])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain or "ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)
