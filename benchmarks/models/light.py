"""The light models in the `onnx` wheel, which come without weights.

Their weights are `ConstantOfShape` nodes; here they become initializers with random values of
the scale that keeps activations in range (He et al., "Delving deep into rectifiers", 2015).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper, version_converter

NAMES = ("densenet121", "inception_v1", "inception_v2", "shufflenet", "squeezenet")
OPSET = 18

Array = np.ndarray[Any, np.dtype[Any]]


def make_light(name: str) -> ModelProto:
    """Return the light model `name` with weights, in opset 18; its outputs are logits."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.load(folder / f"light_{name}.onnx")
    graph = model.graph
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes = {
        node.output[0]: tuple(int(extent) for extent in given[node.input[0]])
        for node in graph.node
        if is_weight(node, given)
    }
    nodes = [node for node in graph.node if not is_weight(node, given)]
    rng = np.random.default_rng(0)
    first_use = {
        value: (node, position)
        for node in reversed(nodes)
        for position, value in enumerate(node.input)
    }
    weights = [
        numpy_helper.from_array(random_weight(rng, shape, *first_use[value]), value)
        for value, shape in shapes.items()
    ]
    used = {value for node in nodes for value in node.input}
    weights += [tensor for tensor in graph.initializer if tensor.name in used]
    inputs = [value for value in graph.input if value.name not in given]
    nodes, outputs = without_softmax(nodes, list(graph.output))
    weighted = helper.make_model(
        helper.make_graph(nodes, name, inputs, outputs, weights),
        opset_imports=list(model.opset_import),
        ir_version=4,
    )
    converted = version_converter.convert_version(weighted, OPSET)
    converted.ir_version = 9
    return converted


def without_softmax(
    nodes: list[NodeProto], outputs: list[ValueInfoProto]
) -> tuple[list[NodeProto], list[ValueInfoProto]]:
    """Return the model without a last softmax, which random weights let round to one 1 and
    zeros."""
    last = nodes[-1]
    if last.op_type != "Softmax" or [o.name for o in outputs] != list(last.output):
        return nodes, outputs
    logits = ValueInfoProto()
    logits.CopyFrom(outputs[0])
    logits.name = last.input[0]
    return nodes[:-1], [logits]


def is_weight(node: NodeProto, given: Mapping[str, Array]) -> bool:
    """Return whether the node stands for a weight that was left out."""
    return node.op_type == "ConstantOfShape" and node.input[0] in given


def random_weight(
    rng: np.random.Generator, shape: tuple[int, ...], user: NodeProto, position: int
) -> Array:
    """Values for a weight by what its first user does with it."""
    if user.op_type in ("Conv", "Gemm", "MatMul") and position == 1:
        fan_in = np.prod(shape[1:]) if user.op_type == "Conv" else shape[0]
        values = rng.standard_normal(shape) * np.sqrt(2 / fan_in)
    elif user.op_type == "BatchNormalization" and position == 4:
        values = 0.8 + 0.4 * rng.random(shape)
    elif user.op_type == "Mul" or (user.op_type == "BatchNormalization" and position == 1):
        values = 0.9 + 0.2 * rng.random(shape)
    else:
        values = 0.05 * rng.standard_normal(shape)
    return values.astype(np.float32)
