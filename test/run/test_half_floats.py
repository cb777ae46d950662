"""Models in f16 and bf16 compared with exact results, and with the interpreter, which rounds each
op."""

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import braid

TYPES = {
    "f16": (np.float16, TensorProto.FLOAT16),
    "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16),
}
SHAPE = (1, 8, 12, 12)


def network(kind: str) -> onnx.ModelProto:
    """Convolution, normalization, attention-like products, a softmax and a loop, in one type."""
    dtype, number = TYPES[kind]
    random = np.random.default_rng(7)

    def weight(name: str, *shape: int) -> TensorProto:
        values = random.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))
        tensor = numpy_helper.from_array(values.astype(dtype), name)
        assert tensor.data_type == number
        return tensor

    def value(name: str, *shape: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, number, shape)

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Add", ["r", "x"], ["s"]),
        helper.make_node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "to"], ["m"]),
        helper.make_node("MatMul", ["m", "v"], ["q"]),
        helper.make_node("Transpose", ["q"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "t"], ["a"]),
        helper.make_node("Softmax", ["a"], ["y"]),
    ]
    weights = [weight("w", 8, 8, 3, 3), weight("b", 8), weight("v", 36, 16)]
    shape = numpy_helper.from_array(np.array([1, 8, 36]), "to")
    graph = helper.make_graph(
        nodes, "half", [value("x", *SHAPE)], [value("y", 1, 8, 8)], [*weights, shape]
    )
    opsets = [helper.make_opsetid("", 22)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def in_f64(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the same numbers in f64."""
    exact = onnx.ModelProto()
    exact.CopyFrom(model)
    for tensor in exact.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.INT64:
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float64), tensor.name))
    for info in (*exact.graph.input, *exact.graph.output):
        info.type.tensor_type.elem_type = TensorProto.DOUBLE
    return exact


def error(result: npt.NDArray[np.generic], exact: npt.NDArray[np.float64]) -> float:
    return float(np.abs(result.astype(np.float64) - exact).max())


@pytest.mark.parametrize("kind", TYPES)
def test_rounds_once(kind: str) -> None:
    dtype, _ = TYPES[kind]
    model = network(kind)
    x = np.random.default_rng(3).standard_normal(SHAPE).astype(dtype)
    exact = np.asarray(braid.interpret(in_f64(model))(x.astype(np.float64)))
    compiled, strict = (
        np.asarray(braid.compile(model, numerics=numerics)(x)) for numerics in ("fast", "strict")
    )
    assert compiled.dtype == strict.dtype == dtype
    # Half a unit in the last place of the result, and the error of f32.
    assert error(strict, exact) <= float(ml_dtypes.finfo(dtype).eps) / 2 * exact.max() * 1.01
    rounded = error(np.asarray(braid.interpret(model)(x)), exact)
    assert error(strict, exact) <= rounded
    # bf16 matmuls round their operands, elsewhere than ops that round their results.
    assert error(compiled, exact) <= 3 * rounded


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shape", [(1, 18, 2, 4), (2, 3, 8, 6), (1, 4, 16, 32)])
def test_movement(kind: str, shape: tuple[int, ...]) -> None:
    """LLVM fails on vectors of 34 bf16 that are taken apart, which SpaceToDepth gave."""
    dtype, number = TYPES[kind]
    node = helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2)
    x, y = (helper.make_tensor_value_info(n, number, s) for n, s in (("x", shape), ("y", None)))
    graph = helper.make_graph([node], "moved", [x], [y])
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    data = np.random.default_rng(5).standard_normal(shape).astype(dtype)
    np.testing.assert_array_equal(braid.compile(model)(data), braid.interpret(model)(data))


def cells(kind: str, op: str, gates: int) -> onnx.ModelProto:
    """Recurrent cells that run for 60 steps, with outputs of every step."""
    dtype, number = TYPES[kind]
    random = np.random.default_rng(11)
    shapes = {"w": (1, gates * 24, 6), "r": (1, gates * 24, 24)}
    weights = [
        numpy_helper.from_array((random.standard_normal(s) / 4).astype(dtype), n)
        for n, s in shapes.items()
    ]
    node = helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=24)
    ports = (("x", (60, 2, 6)), ("y", (60, 1, 2, 24)))
    x, y = (helper.make_tensor_value_info(n, number, s) for n, s in ports)
    graph = helper.make_graph([node], "cells", [x], [y], weights)
    opsets = [helper.make_opsetid("", 22)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_states_of_loops_are_not_rounded(kind: str, op: str, gates: int) -> None:
    dtype, _ = TYPES[kind]
    model = cells(kind, op, gates)
    x = np.random.default_rng(13).standard_normal((60, 2, 6)).astype(dtype)
    exact = np.asarray(braid.interpret(in_f64(model))(x.astype(np.float64)))
    result = np.asarray(braid.compile(model, numerics="strict")(x))
    # Half a unit in the last place of numbers below 1, and the error of f32.
    assert error(result, exact) <= float(ml_dtypes.finfo(dtype).eps) / 4 * 1.01
