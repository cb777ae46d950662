"""Writes the tiny models of the tests beside: `make.py NAME FILE`."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def tensor(name, *shape):
    return numpy_helper.from_array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), name)


def cnn():
    nodes = [
        node("Conv", ["x", "w", "b"], ["conv"], name="c", kernel_shape=[3, 3], strides=[2, 2]),
        node("BatchNormalization", ["conv", "s", "b", "m", "v"], ["norm"]),
        node("Relu", ["norm"], ["relu"]),
        node("AveragePool", ["relu"], ["pool"], kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
        node("Shape", ["pool"], ["shape"]),
        node("Gather", ["shape", "first"], ["batch"]),
        node("Concat", ["batch", "rest"], ["flat"], axis=0),
        node("Reshape", ["pool", "flat"], ["y"]),
    ]
    weights = [tensor("w", 16, 3, 3, 3), *(tensor(name, 16) for name in "bsmv")]
    weights += [helper.make_tensor(name, 7, [1], [n]) for name, n in (("first", 0), ("rest", -1))]
    return nodes, [value("x", [1, 3, 9, 9])], [value("y", [1, 256])], weights


def branch():
    then = helper.make_graph([node("Relu", ["x"], ["t"])], "then", [], [value("t", [4])])
    other = helper.make_graph([node("Neg", ["x"], ["e"])], "else", [], [value("e", [4])])
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    return nodes, [value("c", [], TensorProto.BOOL), value("x", [4])], [value("y", [4])], []


def loop():
    body = helper.make_graph(
        [node("Add", ["s", "s"], ["next"]), node("Identity", ["go"], ["go_on"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("s", [4])],
        [value("go_on", [], TensorProto.BOOL), value("next", [4]), value("next", [4])],
    )
    nodes = [node("Loop", ["n", "", "x"], ["y", "all"], body=body)]
    count = numpy_helper.from_array(np.array(3), "n")
    return nodes, [value("x", [4])], [value("y", [4]), value("all", [3, 4])], [count]


def open_dims():
    return [node("Relu", ["x"], ["y"])], [value("x", ["batch", 3])], [value("y", None)], []


def unknown():
    nodes = [node("Foo", ["x"], ["a"]), node("Bar", ["a"], ["y"])]
    return nodes, [value("x", [1])], [value("y", [1])], []


nodes, inputs, outputs, weights = globals()[sys.argv[1]]()
graph = helper.make_graph(nodes, sys.argv[1], inputs, outputs, weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
onnx.save(model, sys.argv[2])
