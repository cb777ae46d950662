"""Checks of nodes by ONNX's own shape inference, which knows rules that no importer needs."""

from collections.abc import Collection, Mapping
from functools import lru_cache

import onnx
from onnx import (
    AttributeProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TypeProto,
    helper,
    numpy_helper,
)
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.frontends.onnx.admitted import ADMITTED_SCALARS
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import Opsets
from braid.frontends.onnx.constraints import onnx_data_type
from braid.support.sizes.expression import Extent

_MOST_ELEMENTS = 1024
"""Inference gets the values of inputs up to this size; shapes, axes and the like are smaller."""

_MOST_ACCEPTED = 4096
"""The number of different nodes whose inference is cached: layers of a network are often equal."""

_accepted: set[tuple[object, ...]] = set()
"""The nodes that inference accepted, by all that it was given of them except names of tensors."""

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


Constant = tuple[str, SSAValue]
"""The name and value of an initializer or of the output of a `Constant`."""


def check_inference(node: Node, opsets: Opsets, constants: Collection[Constant]) -> None:
    """Check an imported node by the inference function of its schema.

    The function gets the shapes of inputs without open dims, and the values of small constants in
    the model only: ONNX does not know values that braid computes at import, and accepts other
    shapes for them. An op with subgraphs is left out, as inferring these needs the graphs around
    it; so is one without inputs, such as a `Constant`, or one of a rank that `admitted` lists.

    Raises:
        BraidError: ONNX's inference rejects the node.

    """
    if not node.inputs or any(each.type in _GRAPHS for each in node.proto.attribute):
        return
    types: dict[str, TypeProto] = {}
    values: dict[str, TensorProto] = {}
    for index, (name, value) in enumerate(zip(node.proto.input, node.inputs, strict=True)):
        if value is None or name in types:
            continue
        if not isinstance(value.type, TensorType):
            return
        if node.op_type in ADMITTED_SCALARS and index == 0 and not extents_of(value):
            return
        if node.is_mapping(value):
            return
        data_type = (
            TensorProto.STRING if node.is_text(value) else onnx_data_type(element_type_of(value))
        )
        types[name] = _type_proto(data_type, tuple(extents_of(value)))
        is_constant = (name, value) in constants and not node.is_text(value)
        known = node.value_if_known(index) if is_constant else None
        if known is not None and known.size <= _MOST_ELEMENTS:
            values[name] = numpy_helper.from_array(known)
    asked = _question(node, types, values)
    if asked in _accepted:
        return
    try:
        onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, node.domain_opset, node.domain),
            _with_inputs(node.proto, types),
            types,
            values,
            opset_imports=_imports(tuple(opsets.versions.items())),
        )
    except onnx.checker.ValidationError:
        return  # about counts and types, of which `constraints` admits more than this version
    except (onnx.shape_inference.InferenceError, RuntimeError) as error:
        reason = str(error).strip().removeprefix("[ShapeInferenceError]").strip()
        node.fail(f"ONNX's shape inference rejects it: {reason}")
    if len(_accepted) >= _MOST_ACCEPTED:
        _accepted.clear()
    _accepted.add(asked)


def _question(
    node: Node, types: Mapping[str, TypeProto], values: Mapping[str, TensorProto]
) -> tuple[object, ...]:
    """Return all that determines the inference of a node, including which inputs share a name."""
    numbers = {name: number for number, name in enumerate(types)}
    return (
        (node.op_type, node.domain, node.domain_opset),
        tuple(numbers.get(name) for name in node.proto.input),
        tuple(map(bool, node.proto.output)),
        tuple(each.SerializeToString(deterministic=True) for each in node.proto.attribute),
        tuple(each.SerializeToString(deterministic=True) for each in types.values()),
        tuple((numbers[name], each.SerializeToString()) for name, each in values.items()),
    )


@lru_cache(maxsize=64)
def _imports(versions: tuple[tuple[str, int], ...]) -> list[OperatorSetIdProto]:
    return [helper.make_opsetid(*each) for each in versions]


@lru_cache(maxsize=1024)
def _type_proto(data_type: int, shape: tuple[Extent, ...]) -> TypeProto:
    dims = [extent if isinstance(extent, int) and extent >= 0 else None for extent in shape]
    return helper.make_tensor_type_proto(data_type, dims)


def _with_inputs(proto: NodeProto, names: Collection[str]) -> NodeProto:
    """Return a node without the inputs that the call of a function leaves out."""
    if all(name in names for name in proto.input if name):
        return proto
    copy = NodeProto()
    copy.CopyFrom(proto)
    copy.input[:] = [name if name in names else "" for name in proto.input]
    return copy
