"""Writes a small ONNX model: y = tanh(x @ w + b), total = sum(y), on x of 4x8."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main(path: str) -> None:
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((8, 16)).astype(np.float32), "w"),
        numpy_helper.from_array(rng.standard_normal(16).astype(np.float32), "b"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "b"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["y"]),
        helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 16]),
        helper.make_tensor_value_info("total", TensorProto.FLOAT, []),
    ]
    graph = helper.make_graph(nodes, "affine", inputs, outputs, weights)
    opset = helper.make_opsetid("", 18)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)


if __name__ == "__main__":
    main(sys.argv[1])
