"""An ONNX model with some of its nodes: missing operands become inputs, unused values outputs."""

from collections.abc import Sequence

import onnx
from onnx import TensorProto, ValueInfoProto, helper


def subset(model: onnx.ModelProto, kept: Sequence[int]) -> onnx.ModelProto:
    """Return a copy of `model` with only the nodes of its graph that are numbered in `kept`.

    Values whose type is not known become float tensors of unknown shape.
    """
    graph = model.graph
    nodes = [graph.node[number] for number in kept]
    made = {name for node in nodes for name in node.output if name}
    read = {name for node in nodes for name in _reads(node)}
    weights = [w for w in graph.initializer if w.name in read - made]
    known = {weight.name for weight in weights}
    types = {info.name: info for info in (*graph.value_info, *graph.input, *graph.output)}
    order = dict.fromkeys([*(i.name for i in graph.input), *sorted(read)])
    inputs = [name for name in order if name in read - made - known]
    outputs = [name for node in nodes for name in node.output if name and name not in read]
    new = helper.make_graph(
        nodes,
        graph.name,
        [_info(name, types) for name in inputs],
        [_info(name, types) for name in outputs],
        weights,
        value_info=[types[name] for name in types if name in made - set(outputs)],
    )
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.CopyFrom(new)
    return copy


def with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with every type that shape inference finds, or as it is if that fails."""
    try:
        return onnx.shape_inference.infer_shapes(model)
    except (onnx.shape_inference.InferenceError, ValueError):
        return model


def _info(name: str, types: dict[str, ValueInfoProto]) -> ValueInfoProto:
    return types.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def _reads(node: onnx.NodeProto) -> list[str]:
    """Return what a node reads from its graph, in its branches and bodies as well."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            own = {i.name for i in graph.input} | {w.name for w in graph.initializer}
            own |= {name for inner in graph.node for name in inner.output}
            inner_reads = [name for inner in graph.node for name in _reads(inner)]
            ends = [output.name for output in graph.output]
            names += [name for name in (*inner_reads, *ends) if name and name not in own]
    return names
