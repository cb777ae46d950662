"""Weights of 8 and 16 bits stay so in the artifact, and results are those of ONNX Runtime."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import braid

ROWS, DEPTH, COLUMNS = 3000, 128, 384
_MOST_CODE = 300_000
"""Bytes of an artifact besides its weights: kernels, and the runtime's data."""


def encoder(kind: str) -> onnx.ModelProto:
    """Return a table of embeddings and two products by weights of a kind: i8 or f16."""
    random = np.random.default_rng(7)

    def weights(*shape: int) -> NDArray[np.generic]:
        if kind == "i8":
            return random.integers(-127, 128, shape, dtype=np.int8)
        return random.standard_normal(shape).astype(np.float16)

    def scales(*shape: int) -> NDArray[np.generic]:
        return random.uniform(0.005, 0.01, shape).astype(np.float32)

    constants = {
        "table": weights(ROWS, DEPTH),
        "table_scale": scales(ROWS, 1),
        "up": weights(DEPTH, COLUMNS),
        "up_scale": scales(1, COLUMNS),
        "down": weights(DEPTH, COLUMNS),
        "down_scale": scales(DEPTH),
        "down_zero": np.zeros(DEPTH, np.int8),
    }
    node = helper.make_node
    nodes = [
        node("Cast", ["table"], ["wide_table"], to=TensorProto.FLOAT),
        node("Mul", ["wide_table", "table_scale"], ["scaled_table"]),
        node("Gather", ["scaled_table", "ids"], ["x"]),
        node("Cast", ["up"], ["wide_up"], to=TensorProto.FLOAT),
        node("Mul", ["up_scale", "wide_up"], ["scaled_up"]),
        node("MatMul", ["x", "scaled_up"], ["hidden"]),
        node("Relu", ["hidden"], ["active"]),
    ]
    if kind == "i8":
        inputs = ["down", "down_scale", "down_zero"]
        nodes.append(node("DequantizeLinear", inputs, ["scaled_down"], axis=0))
    else:
        nodes.append(node("Cast", ["down"], ["scaled_down"], to=TensorProto.FLOAT))
    nodes += [
        node("Transpose", ["scaled_down"], ["turned"], perm=[1, 0]),
        node("MatMul", ["active", "turned"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "length", DEPTH])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


@pytest.mark.parametrize("kind", ["i8", "f16"])
def test_weights_stay_in_their_type(kind: str, tmp_path: Path) -> None:
    model = encoder(kind)
    compiled = braid.compile(model, cache=False)
    compiled.save(tmp_path / "model.braid")
    stored = (tmp_path / "model.braid").stat().st_size
    assert stored <= model.ByteSize() + _MOST_CODE

    # When optimizing, it also rounds factors of dequantized weights to 8 bits.
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    random = np.random.default_rng(1)
    for batch, length in ((1, 1), (3, 7), (2, 64), (1, 0)):
        ids = random.integers(-ROWS, ROWS, (batch, length))
        (expected,) = session.run(None, {"ids": ids})
        (found,) = compiled.run([ids])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
