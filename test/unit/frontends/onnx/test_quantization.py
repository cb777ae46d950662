"""Quantized models: the ops between a quantization and the dequantization after it."""

from typing import Any

import numpy as np
from onnx import helper
from xdsl.ir import Operation

from braid.analysis.interpreter import interpret
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.frontends.onnx import ImportedModel, import_onnx
from test.unit.frontends.onnx.conftest import graph_of, model_of, onnx_runtime

RANDOM = np.random.default_rng(5)
SCALE, ZERO = np.array(0.05, np.float32), np.array(90, np.uint8)


def quantized_convolution() -> Any:
    """Return a convolution of 8-bit operands in QDQ form, and its input."""
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "ws"], ["wd"], axis=0),
        node("DequantizeLinear", ["b", "bs"], ["bd"], axis=0),
        node("Conv", ["d", "wd", "bd"], ["c"]),
        node("QuantizeLinear", ["c", "s", "z"], ["y"]),
    ]
    scales = RANDOM.uniform(0.01, 0.02, 16).astype(np.float32)
    constants = {
        "s": SCALE,
        "z": ZERO,
        # Seven bits: where ONNX Runtime adds pairs of products in 16 bits, none saturates.
        "w": RANDOM.integers(-63, 64, (16, 8, 3, 3)).astype(np.int8),
        "ws": scales,
        "b": RANDOM.integers(-900, 900, 16).astype(np.int32),
        "bs": (SCALE * scales).astype(np.float32),
    }
    inputs = {"x": RANDOM.standard_normal((1, 8, 10, 10)).astype(np.float32)}
    return model_of(graph_of(nodes, inputs, ["y"], constants)), inputs


def behind(imported: ImportedModel, op: Operation) -> set[Operation]:
    """All ops that the op's result is made of."""
    found: set[Operation] = set()
    pending = [op]
    while pending:
        for operand in pending.pop().operands:
            if isinstance(operand.owner, Operation) and operand.owner not in found:
                found.add(operand.owner)
                pending.append(operand.owner)
    return found


def test_activations_stay_floats_between_quantizations() -> None:
    model, inputs = quantized_convolution()
    imported = import_onnx(model)
    (convolution,) = [op for op in imported.module.walk() if op.name == "braid.conv"]
    activation = convolution.operands[0].owner
    assert isinstance(activation, Operation)
    assert not any(isinstance(op, ELEMENTWISE["cast"]) for op in behind(imported, activation))
    (result,) = interpret(imported.module, inputs, parameters=imported.parameters)
    (expected,) = onnx_runtime(model, inputs)
    assert result.dtype == expected.dtype
    assert abs(result.astype(int) - expected.astype(int)).max() <= 1
    assert (result == expected).mean() > 0.99


def test_vectors_of_floats_are_operands_of_kernels() -> None:
    imported = import_onnx(quantized_convolution()[0])
    for op in imported.module.walk():
        if isinstance(op, ConstantOp) and op.value.get_element_type().name == "f32":
            assert op.value.is_splat()
    keys = [op.key.data for op in imported.module.walk() if isinstance(op, ParameterOp)]
    assert set(keys) <= set(imported.parameters)
