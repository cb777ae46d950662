"""Writes a small ONNX model with an open dim: y = tanh(x @ w), on x of batch x 8."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main(path: str) -> None:
    weight = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Tanh", ["a"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 16])
    graph = helper.make_graph(nodes, "rows", [x], [y], [numpy_helper.from_array(weight, "w")])
    opset = helper.make_opsetid("", 18)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)


if __name__ == "__main__":
    main(sys.argv[1])
