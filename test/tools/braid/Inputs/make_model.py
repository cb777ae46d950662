"""Writes a small ONNX model: y = tanh(x @ w + b), total = max(y), on x of 4x8, f32 or bf16."""

import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main(path: str, type_: str = "f32") -> None:
    rng = np.random.default_rng(0)
    dtype = ml_dtypes.bfloat16 if type_ == "bf16" else np.float32
    element = TensorProto.BFLOAT16 if type_ == "bf16" else TensorProto.FLOAT
    weights = [
        numpy_helper.from_array(rng.standard_normal((8, 16)).astype(dtype), "w"),
        numpy_helper.from_array(rng.standard_normal(16).astype(dtype), "b"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "b"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["y"]),
        helper.make_node("ReduceMax", ["y"], ["total"], keepdims=0),
    ]
    inputs = [helper.make_tensor_value_info("x", element, [4, 8])]
    outputs = [
        helper.make_tensor_value_info("y", element, [4, 16]),
        helper.make_tensor_value_info("total", element, []),
    ]
    graph = helper.make_graph(nodes, "affine", inputs, outputs, weights)
    opset = helper.make_opsetid("", 18)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
